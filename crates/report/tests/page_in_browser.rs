//! The page of a committed run in a real browser: Debian's chromium without its windows, driven by playwright-core.
//! `cargo xtask test` installs both; without them the tests say that they are skipped. The page of a large run
//! stays small, which needs no browser.

mod hostile;
mod large;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex, PoisonError};

use haulage_report::figure::EPSILON;
use haulage_report::{Report, Source, page};
use lab::tune::record::Records;
use serde_json::{Value, json};

/// A page may take this long from the beginning of navigation until its first screen is drawn, in
/// milliseconds, on a machine of two processors that has nothing else to do.
const USABLE_MS_MAX: u64 = 2000;

/// How much longer it may take on a slow machine that has much else to do: what fails then has grown
/// out of all proportion.
const SLOW_AND_BUSY: u64 = 10;

/// The committed run, twice for whoever compares. Its answers are made anew from its samples.
static SMALL: LazyLock<[Source; 2]> = LazyLock::new(|| {
    let read = || Source::read(&here("runs/small")).expect("the committed run can be read");
    [read(), read()]
});

/// What playwright-core asks of node, and what Debian 12 has.
const NODE_MIN: u32 = 18;

/// With this variable each page is drawn in pictures for a person, which takes as long as the tests.
const PICTURES: &str = "HAULAGE_PAGE_PICTURES";

/// Whatever hangs, this ends it.
const LIMIT_SECONDS: &str = "1500";

/// One browser at a time: each starts half a dozen processes.
static BROWSER: Mutex<()> = Mutex::new(());

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(path)
}

/// The browser, where what drives it is there too; otherwise what is missing.
fn browser() -> Result<PathBuf, String> {
    if !here("browser/node_modules/playwright-core").is_dir() {
        return Err("playwright-core is not installed in crates/report/tests/browser".to_owned());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let find = |name: &str| {
        std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
    };
    let node = find("node").ok_or("there is no node")?;
    let version = Command::new(&node).arg("--version").output().map_err(|why| why.to_string())?;
    let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
    let major = version.trim_start_matches('v').split('.').next().and_then(|it| it.parse().ok());
    if major.is_none_or(|major: u32| major < NODE_MIN) {
        return Err(format!("{} is {version}, {NODE_MIN} is the least", node.display()));
    }
    let chromium = find("chromium-headless-shell").or_else(|| find("chromium"));
    chromium.ok_or_else(|| "there is no chromium".to_owned())
}

/// The cases of a page whose scripts and looks are those of another page.
const DRAWN_AND_FITTING: [&str; 3] = [
    "no error, no request, and every figure draws",
    "nothing is clipped or overlaps at 1280 pixels",
    "nothing is clipped or overlaps at 390 pixels",
];

#[test]
fn the_pages_of_one_run_and_of_two_work() {
    let [one, two] = [Report::of(&SMALL[..1], EPSILON), Report::comparing(&SMALL, EPSILON)];
    check(&[("small", &one, json!(null)), ("two", &two, json!(DRAWN_AND_FITTING))]);
}

#[test]
fn names_from_a_run_are_shown_and_never_obeyed() {
    let home = tempfile::tempdir().expect("created");
    hostile::run(home.path());
    let sources = [Source::read(home.path()).expect("the run can be read")];
    let cases = json!([
        "no error, no request, and every figure draws",
        "nothing in the page but what it is made of",
        "what is shown is text",
        "no script runs but the page's own",
    ]);
    check(&[("hostile", &Report::of(&sources, EPSILON), cases)]);
}

/// The most that a page may have, in bytes.
const PAGE_BYTES_MAX: usize = 400_000;

#[test]
fn the_page_of_10_000_samples_stays_small_and_can_be_used_soon() {
    let home = tempfile::tempdir().expect("created");
    large::run(home.path());
    let sources = [Source::read(home.path()).expect("the run can be read")];
    let report = Report::of(&sources, EPSILON);
    assert_eq!(ids(&report), ["ratio", "size", "split", "drift"], "what such a run has figures of");
    let thinned = report.figures.iter().flat_map(|figure| &figure.notes);
    let said = thinned.filter(|note| note.contains("of 10,000 runs are drawn")).count();
    assert_eq!(said, 1, "what is left out is said once");
    let cases = json!(["no error, no request, and every figure draws", "it can be used soon"]);
    let bytes = check(&[("large", &report, cases)]);
    assert!(bytes < PAGE_BYTES_MAX, "{bytes} bytes");
}

#[test]
fn the_page_of_what_was_tuned_works() {
    let cases =
        ["dark follows the system and the switch", "paper gets all figures and no controls"];
    let cases = json!([&cases[..], &DRAWN_AND_FITTING].concat());
    let read = |name: &str| {
        let file = here("tuned").join(name);
        let text = std::fs::read(file).expect("the committed record can be read");
        Records::parse(&text).expect("the committed record can be read").pairs
    };
    let one = read("ext4-btrfs.json");
    let two = [one.clone(), read("tmpfs-tmpfs.json")].concat();
    let [one, two] = [one, two].map(Report::of_tuning);
    check(&[("tuned", &one, cases), ("tuned-two", &two, json!(DRAWN_AND_FITTING))]);
}

fn ids(report: &Report<'_>) -> Vec<&'static str> {
    report.figures.iter().map(|figure| figure.about.id).collect()
}

/// Writes the page of each report beside the other results of the build, where a person finds it and its pictures.
/// Has a browser go through the cases of each page, all when they are null. Returns the bytes of the pages.
fn check(pages: &[(&str, &Report<'_>, Value)]) -> usize {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report-page");
    let mut bytes = 0;
    let mut wanted = Vec::new();
    for (name, report, only) in pages {
        let out = home.join(name);
        std::fs::create_dir_all(&out).expect("a directory for the page");
        let file = out.join("page.html");
        let page = page::render(report, &out);
        bytes += page.len();
        std::fs::write(&file, &page).expect("written");
        wanted.push(
            json!({ "page": file, "figures": ids(report), "only": only, "screenshots": out }),
        );
    }
    let chromium = match browser() {
        Ok(chromium) => chromium,
        Err(why) => {
            testfs::skip(&testfs::test_name(), &why);
            return bytes;
        }
    };
    let _alone = BROWSER.lock().unwrap_or_else(PoisonError::into_inner);
    let wanted = json!({
        "pages": wanted,
        "chromium": chromium,
        "names": hostile::VARIANTS.map(|(_, name)| name),
        "usable_ms_max": USABLE_MS_MAX * SLOW_AND_BUSY,
        "pictures": std::env::var_os(PICTURES).is_some(),
        "scratch": home.join("scratch"),
        "fonts": here("../assets"),
    });
    // TERM has it end the browser too; by its own limits it ends long before.
    let output = Command::new("timeout")
        .args(["--kill-after=20", LIMIT_SECONDS, "node"])
        .arg(here("browser/run.js"))
        .arg(wanted.to_string())
        .output()
        .expect("timeout can be started");
    let said = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    eprintln!("{said}{complaints}the pages: {}", home.display());
    assert!(output.status.success(), "{said}{complaints}");
    bytes
}
