//! What `cp` does by measurement: which line of a profile is used, and that none can fail a copy.

use std::fs::{File, read, remove_dir_all, remove_file, write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use engines::profile::{Choice, FileSystems, Line, Machine, PairChoices, Profile, SizeClass};
use rustix::fs::{Advice, fadvise};
use serde_json::Value;
use sys::cachestat;
use testfs::{
    FsKind, each_fs, each_pair, fs, json_lines, random_bytes, skip, stderr, stdout, test_name,
};

use crate::{check_content, check_success, dir_with, fixture, haulage_cp};

/// Runs in `dir`, with the variable HAULAGE_PROFILE naming `profile`.
fn cp(dir: impl AsRef<Path>, profile: &Path, line: &str) -> Output {
    haulage_cp(dir, line).env("HAULAGE_PROFILE", profile).output().expect("haulage ran")
}

/// Copies `src` to `copy` with `options`. Returns its line of the receipt, and standard error.
fn copy(dir: impl AsRef<Path>, profile: &Path, options: &str, src: &str) -> (Value, String) {
    let dir = dir.as_ref();
    let line = format!("--reflink=never --receipt=receipt {options} {src} copy");
    let output = cp(dir, profile, &line);
    check_success(&output, &line);
    check_content(dir.join("copy"), read(dir.join(src)).expect("read"), &line);
    remove_file(dir.join("copy")).expect("removed");
    (json_lines(&dir.join("receipt")).swap_remove(0), stderr(&output))
}

/// Who chose the way, what was chosen, and what moved the last byte.
pub(crate) fn way(entry: &Value) -> [&str; 3] {
    let moved = entry["attempts"].as_array().and_then(|attempts| attempts.last());
    let moved = moved.expect("an attempt")["variant"].as_str().expect("a word");
    let word = |field: &str| entry["chosen"][field].as_str().expect("a word");
    [word("by"), word("variant"), moved]
}

/// A line with this variant for every situation.
fn line(variant: &str) -> Line {
    let choice = Choice { variant: variant.to_owned(), ..Choice::default() };
    Line { choice, ..Line::default() }
}

/// These lines for copies between the file systems `found`.
pub(crate) fn pair_of(found: &FileSystems, lines: Vec<Line>) -> PairChoices {
    let FileSystems { src, dst, same } = found.clone();
    PairChoices { src, dst, same: Some(same), kernel: None, lines }
}

/// A profile for any machine and any file systems, with these lines of one choice each.
fn profile_of(choices: &[&str]) -> String {
    let choices: Vec<String> =
        choices.iter().map(|lines| format!("[[machine.pair.choice]]\n{lines}\n")).collect();
    format!("version = 1\n[[machine]]\n[[machine.pair]]\n{}", choices.concat())
}

fn profile_in(dir: impl AsRef<Path>, choices: &[&str]) -> PathBuf {
    let path = dir.as_ref().join("profile.toml");
    write(&path, profile_of(choices)).expect("written");
    path
}

/// Whether the choice was none of the user's.
fn is_by_rule(entry: &Value) -> bool {
    way(entry)[0] == "rule"
}

#[test]
fn a_line_is_used_wherever_it_fits() {
    each_fs(|kind, dir| {
        let profile = profile_in(dir, &["variant = \"splice:1M\""]);
        fixture::add("a#100000:1", dir);
        let (entry, words) = copy(dir, &profile, "", "a");
        assert_eq!(way(&entry), ["profile", "splice:1M", "splice:1M"], "{kind}");
        let line = entry["chosen"]["line"].as_str().expect("a line");
        assert!(line.starts_with(&format!("within {kind} /")), "{line}");
        assert_eq!(words, "", "{kind}");
        let (entry, _) = copy(dir, &profile, "--profile=none", "a");
        assert!(is_by_rule(&entry), "{kind}");
        let (entry, _) = copy(dir, &profile, "--engine=read_write:8K", "a");
        assert_eq!(way(&entry), ["forced", "read_write:8K", "read_write:8K"], "{kind}");
        let other = dir.join("other.toml");
        write(&other, profile_of(&["variant = \"read_write:32K\""])).expect("written");
        let (entry, _) = copy(dir, &profile, "--profile=other.toml", "a");
        assert_eq!(way(&entry), ["profile", "read_write:32K", "read_write:32K"], "{kind}");
        let (entry, _) = copy(dir, &profile, "--no-cache", "a");
        assert!(is_by_rule(&entry), "{kind}: a line for copies that may use the cache");
        // A clone precedes the profile.
        let (entry, _) = copy(dir, &profile, "--reflink=auto", "a");
        let expected = match kind.reflinks() {
            true => ["rule", "reflink", "reflink"],
            false => ["profile", "splice:1M", "splice:1M"],
        };
        assert_eq!(way(&entry), expected, "{kind}");
    });
}

#[test]
fn a_line_applies_to_its_file_systems_only() {
    each_pair(|src, dst| {
        let files = [(src, "a"), (dst, "b")].map(|(scratch, name)| {
            fixture::add(&format!("{name}#10000:1"), scratch.path());
            File::open(scratch.join(name)).expect("opened")
        });
        let there = FileSystems::of(files[0].as_fd(), files[1].as_fd());
        let back = FileSystems::of(files[1].as_fd(), files[0].as_fd());
        assert!(!there.same && there.src == back.dst, "{there:?} {back:?}");
        let mut profile = Profile::default();
        for (found, variant) in [(&back, "read_write:8K"), (&there, "read_write:16K")] {
            profile.enter(&Machine::this(), pair_of(found, vec![line(variant)]));
        }
        let path = src.join("profile.toml");
        profile.write(&path).expect("written");
        let by_profile = |variant: &str, from: FsKind| format!("': {variant} (profile: {from} /");
        for (dir, from, to, expected) in [
            (src, src.join("a"), dst.join("copy"), by_profile("read_write:16K", src.kind)),
            (dst, dst.join("b"), src.join("copy"), by_profile("read_write:8K", dst.kind)),
            (src, src.join("a"), src.join("copy"), String::from("(default")),
        ] {
            let line = format!("--reflink=never --debug {} {}", from.display(), to.display());
            let said = stdout(&cp(dir.path(), &path, &line));
            let line = said.lines().last().expect("found");
            assert!(line.contains(&expected), "{expected} in {line}");
        }
    });
}

#[test]
fn a_length_belongs_to_its_class_up_to_the_last_byte() {
    const VARIANTS: [&str; 6] = ["4K", "8K", "16K", "32K", "64K", "128K"];
    let dir = tempfile::tempdir().expect("created");
    let lines: Vec<String> = SizeClass::ALL
        .iter()
        .zip(VARIANTS)
        .map(|(size, buffer)| format!("size = \"{size}\"\nvariant = \"read_write:{buffer}\""))
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let profile = profile_in(&dir, &lines);
    for bytes in [1, 4 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20] {
        for bytes in [bytes, bytes + 1] {
            // A length needs no data behind it, and a class is that of the whole file.
            let file = File::create(dir.path().join("a")).expect("created");
            file.set_len(bytes).expect("length set");
            file.write_all_at(b"x", 0).expect("written");
            file.sync_all().expect("synced");
            let (entry, _) = copy(&dir, &profile, "", "a");
            let class = SizeClass::of(bytes);
            let expected = format!("read_write:{}", VARIANTS[class.index()]);
            assert_eq!(way(&entry), ["profile", &expected, &expected], "{bytes}");
        }
    }
}

#[test]
fn lines_match_by_residency() {
    let lines = [
        "residency = \"resident\"\nvariant = \"read_write:64K\"",
        "residency = \"absent\"\nvariant = \"read_write:128K\"",
        "residency = \"mixed\"\nvariant = \"read_write:32K\"",
    ];
    for kind in [FsKind::Ext4, FsKind::Xfs, FsKind::Btrfs] {
        let Some(scratch) = fs(kind) else { continue };
        let dir = scratch.path();
        let profile = profile_in(dir, &lines);
        for bytes in [200 << 10, 1 << 20, 5 << 20, 40 << 20] {
            write(dir.join("a"), random_bytes(bytes, 1)).expect("written");
            let file = File::open(dir.join("a")).expect("opened");
            file.sync_all().expect("synced");
            let len = bytes as u64;
            match cachestat(file.as_fd(), 0, len).map(|counted| counted.cached_pages) {
                Ok(found) if found * 4096 >= len => (),
                other => {
                    skip(&test_name(), &format!("pages cannot be counted: {other:?}"));
                    return;
                }
            }
            // Each copy brings all of the source back.
            for (dropped_from, expected) in
                [(len, "read_write:64K"), (0, "read_write:128K"), (len / 2, "read_write:32K")]
            {
                fadvise(&file, dropped_from, None, Advice::DontNeed).expect("advised");
                let (entry, _) = copy(dir, &profile, "", "a");
                assert_eq!(way(&entry), ["profile", expected, expected], "{kind} {bytes}");
            }
        }
    }
}

/// What was read past the page cache would have to be read from the medium once more.
#[test]
fn a_source_that_is_to_be_compared_is_read_through_the_page_cache() {
    let Some(scratch) = fs(FsKind::Ext4) else { return };
    let dir = scratch.path();
    let profile = profile_in(dir, &["variant = \"direct_read:64K,depth=2\""]);
    fixture::add("a#300000:1", dir);
    let (entry, _) = copy(dir, &profile, "", "a");
    assert_eq!(way(&entry), ["profile", "direct_read:64K,depth=2", "direct_read:64K,depth=2"]);
    let (entry, _) = copy(dir, &profile, "--verify", "a");
    assert!(is_by_rule(&entry), "{entry}");
    assert!(!way(&entry)[2].starts_with("direct"), "{entry}");
}

#[test]
fn an_unreadable_profile_does_not_stop_the_copy() {
    let dir = dir_with(
        "a#2M:1; damaged=version\\s=\\s1\\n[[machine]\\n; \
         newer=version\\s=\\s7\\n[the]\\nfuture\\s=\\strue\\n; \
         other={\"version\":\\s1}; long~1048576M; fifo|",
    );
    let at = |name: &str| dir.path().join(name);
    write(at("typo"), profile_of(&["varient = \"splice\""])).expect("written");
    for (name, why) in [
        ("damaged", "line 2: "),
        ("newer", "version 7 is not known here, expected 1\n"),
        ("typo", "line 5: unknown field `varient`, expected one of `size`, "),
        ("other", "line 1: "),
        ("long", "it is longer than 8388608 bytes\n"),
        ("fifo", "it is no regular file\n"),
        ("/dev/tty", ""),
        ("missing", "No such file or directory\n"),
        ("a/below", "No such file or directory\n"),
    ] {
        let (entry, words) = copy(&dir, &at(name), "", "a");
        let expected =
            format!("cp: warning: not using the profile '{}': {why}", at(name).display());
        assert!(words.starts_with(&expected), "{words}");
        assert_eq!(words.lines().count(), 1, "{words}");
        assert!(is_by_rule(&entry), "{name}");
    }
}

#[test]
fn the_users_own_is_read_when_there_is_something_to_copy() {
    let dir = dir_with("small#1000:1; large#16777217:1; config/haulage/; home/.config->../config");
    profile_in(dir.path().join("config/haulage"), &["variant = \"read_write:8K\""]);
    let moved_by = |src: &str, variables: &[(&str, &Path)]| {
        let mut command = haulage_cp(&dir, &format!("--reflink=never --receipt=- {src} copy"));
        command.env_remove("HAULAGE_PROFILE").env_remove("XDG_CONFIG_HOME").env_remove("HOME");
        let output = command.envs(variables.iter().copied()).output().expect("haulage ran");
        assert_eq!(stderr(&output), "");
        let entry: Value =
            serde_json::from_str(stdout(&output).lines().next().expect("found")).unwrap();
        (!is_by_rule(&entry)).then(|| way(&entry)[2].to_owned())
    };
    let config = dir.path().join("config");
    let home = dir.path().join("home");
    let (xdg, home) = (("XDG_CONFIG_HOME", config.as_path()), ("HOME", home.as_path()));
    let own = Some(String::from("read_write:8K"));
    assert_eq!(moved_by("large", &[xdg]), own);
    assert_eq!(moved_by("large", &[home]), own);
    assert_eq!(moved_by("large", &[("HOME", Path::new("/nonexistent"))]), None);
    // One small file is copied before a profile would be read, which is after 10 ms: on a busy machine that may
    // take several processes.
    assert!((0..50).any(|_| moved_by("small", &[xdg]).is_none()));
}

#[test]
fn profile_notices_need_debug_or_stats() {
    let dir = dir_with("a#2M:1; b#2M:2");
    let file = File::open(dir.path().join("a")).expect("opened");
    let now = FileSystems::of(file.as_fd(), file.as_fd());
    let path = dir.path().join("profile.toml");
    let kernel = rustix::system::uname().release().to_string_lossy().into_owned();
    let check = |machine: &Machine, pair: &PairChoices, expected: Option<&str>| {
        let mut profile = Profile::default();
        profile.enter(machine, pair.clone());
        profile.write(&path).expect("written");
        let (_, words) = copy(&dir, &path, "", "a");
        assert_eq!(words, "");
        for option in ["--debug", "--stats"] {
            fixture::add("to/", &dir);
            let output = cp(&dir, &path, &format!("--reflink=never {option} a b to"));
            remove_dir_all(dir.path().join("to")).expect("removed");
            check_success(&output, option);
            let words = stderr(&output);
            let notes: Vec<&str> =
                words.lines().filter(|line| line.starts_with("cp: note: ")).collect();
            assert_eq!(notes.len(), usize::from(expected.is_some()), "once a run: {words}");
            assert!(expected.is_none_or(|expected| notes[0].contains(expected)), "{words}");
        }
    };
    let lines = vec![line("read_write:64K")];
    let pair = PairChoices { kernel: Some(kernel), ..pair_of(&now, lines) };
    let this = Machine::this();
    check(&this, &pair, None);
    let older = PairChoices { kernel: Some(String::from("2.6.32")), ..pair.clone() };
    check(&this, &older, Some("the kernel was 2.6.32 then and is "));
    let mut mounted = pair.clone();
    mounted.src.options = Some(String::from("ro;ro"));
    mounted.dst.options = Some(String::from("ro;ro"));
    check(&this, &mounted, Some(" were ro;ro then and are "));
    let newer = PairChoices { lines: vec![line("teleport"), line("splice")], ..pair.clone() };
    check(&this, &newer, Some("variant 'teleport': no engine is called 'teleport'; there are "));
    let other = Machine { id: Some(String::from("0123456789abcdef")), ..this.clone() };
    check(&other, &pair, Some("has nothing that was measured on this machine"));
    let unused = PairChoices { lines: Vec::new(), ..older };
    check(&this, &unused, None);
}

#[test]
fn lines_with_unusable_variants_are_skipped() {
    let dir = dir_with("a#5M:1");
    let lines = [
        "variant = \"teleport\"",
        "variant = \"memory\"",
        // A profile may not choose these: the user has excluded shared blocks.
        "variant = \"reflink\"",
        "variant = \"copy_file_range\"",
        "variant = \"sendfile\"",
    ];
    let profile = profile_in(&dir, &lines);
    let (entry, _) = copy(&dir, &profile, "", "a");
    assert_eq!(way(&entry), ["profile", "sendfile", "sendfile"]);
    // Nor may holes be kept by the kernel.
    let (entry, _) = copy(&dir, &profile, "--reflink=auto --sparse=never", "a");
    assert_eq!(way(&entry)[1], "sendfile", "{entry}");
}

#[test]
fn lines_match_by_files_in_flight() {
    let dir = tempfile::tempdir().expect("created");
    let names: Vec<String> = (0..120).map(|number| format!("f{number}")).collect();
    names.iter().for_each(|name| fixture::add(&format!("{name}#100000:1"), &dir));
    let lines = [
        "in_flight = \"one\"\nvariant = \"read_write:64K@3\"",
        "in_flight = \"several\"\nvariant = \"read_write:32K@3\"",
    ];
    let profile = profile_in(&dir, &lines);
    let moved_by = |jobs: &str| {
        fixture::add("to/", &dir);
        // The rate gives a second worker half a second to start in.
        let options = "--reflink=never --limit-rate=24M --receipt=r --target-directory=to";
        let line = format!("{jobs} {options} {}", names.join(" "));
        check_success(&cp(&dir, &profile, &line), jobs);
        remove_dir_all(dir.path().join("to")).expect("removed");
        let summary = json_lines(&dir.path().join("r")).pop().expect("found");
        let variants = summary["variants"].as_array().expect("a list").clone();
        variants.into_iter().map(|row| row["variant"].as_str().unwrap().to_owned()).collect()
    };
    let alone: Vec<String> = moved_by("--jobs=1");
    assert_eq!(alone, ["read_write:64K"]);
    // While each worker has a file of its own none is shared; at the end there may be idle ones.
    let together: Vec<String> = moved_by("--jobs=2");
    assert!(together.contains(&String::from("read_write:32K")), "{together:?}");
    assert!(together.iter().all(|variant| !variant.starts_with("read_write:32K@")));
}

#[test]
fn a_refusal_is_reported_and_the_next_variant_continues() {
    let dir = dir_with("a#100000:1; b#100000:2; to/");
    // The destination is open for writing only, and cannot be mapped.
    let profile = profile_in(&dir, &["variant = \"mmap:8M,dst\""]);
    let stdout = stdout(&cp(&dir, &profile, "--debug --reflink=never a b to"));
    let ours: Vec<&str> = stdout.lines().filter(|line| line.starts_with("haulage: ")).collect();
    assert_eq!(ours.len(), 2, "{stdout}");
    for line in ours {
        assert!(line.contains(": splice:512K,pipe=512K (profile: within "), "{line}");
        assert!(line.contains("; mmap:8M,dst was refused"), "{line}");
    }
    for name in ["a", "b"] {
        let content = read(dir.path().join(name)).expect("read");
        check_content(dir.path().join("to").join(name), content, name);
    }
}

#[test]
fn stats_count_what_chose_the_variant() {
    let dir = dir_with("a#2M:1; to/");
    let profile = profile_in(&dir, &["variant = \"read_write:8K\""]);
    // A profile has no lines for files whose length is not known.
    let line = "--reflink=never --stats --receipt=r a /proc/version to";
    let words = stderr(&cp(&dir, &profile, line));
    let (_, chosen) = words.split_once("\nchosen by\n").expect("a section");
    let rows: Vec<String> = chosen
        .lines()
        .take(2)
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(rows, ["profile 1 file", "rule 1 file"], "{words}");
    let summary = json_lines(&dir.path().join("r")).pop().expect("found");
    let expected = serde_json::json!([{"by": "profile", "files": 1}, {"by": "rule", "files": 1}]);
    assert_eq!(summary["chosen"], expected);
}
