//! What else becomes of a committed run: text, SVG and PNG; and how large a page becomes.

use std::fmt::Write as _;
use std::path::Path;

use haulage_report::{Report, Source, page, static_figures, text};

fn small() -> Source {
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/runs/small");
    Source::read(&run).expect("the committed run can be read")
}

/// A text without its ANSI colours.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for (index, piece) in text.split('\x1b').enumerate() {
        let after = if index == 0 { piece } else { piece.split_once('m').map_or("", |it| it.1) };
        plain.push_str(after);
    }
    plain
}

#[test]
fn text_fits_eighty_columns() {
    let sources = [small()];
    let report = Report::of(&sources);
    let text = plain(&text::render(&report, 80));
    let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(wide.is_empty(), "{wide:#?}");
    for expected in ["not certified", "├", "How large a buffer has to be", "Then and now"] {
        assert!(text.contains(expected), "{expected} is missing in\n{text}");
    }
}

#[test]
fn each_figure_is_drawn_as_svg_and_png() {
    let sources = [small()];
    let report = Report::of(&sources);
    let drawings = static_figures::drawings(&report);
    for figure in &report.figures {
        let of_it = drawings.iter().filter(|it| it.name.starts_with(figure.id)).count();
        assert_eq!(of_it, figure.groups.len(), "{}", figure.id);
    }
    for drawing in &drawings {
        let png = static_figures::png(&drawing.svg, 0.5).unwrap_or_else(|why| {
            panic!("{}: {why}", drawing.name);
        });
        assert!(png.starts_with(b"\x89PNG"), "{}", drawing.name);
        assert!(!drawing.svg.contains("NaN") && !drawing.svg.contains("inf"), "{}", drawing.name);
    }
    let again = static_figures::drawings(&Report::of(&sources));
    let same = drawings.iter().zip(&again).all(|(one, other)| one.svg == other.svg);
    assert!(same, "the same samples give the same drawings");
}

/// The most that a page may have, in bytes.
const PAGE_BYTES_MAX: usize = 5_000_000;

/// Samples of the large run.
const SAMPLES: u32 = 200_000;

/// A run directory like the committed one's part `methods`, with very many samples.
fn large(home: &Path) {
    const VARIANTS: [&str; 5] =
        ["read_write:4K", "read_write:64K", "mmap:8M", "splice", "sendfile"];
    const SIZES: [(&str, u64); 8] = [
        ("4K", 4 << 10),
        ("16K", 16 << 10),
        ("64K", 64 << 10),
        ("256K", 256 << 10),
        ("1M", 1 << 20),
        ("4M", 4 << 20),
        ("16M", 16 << 20),
        ("64M", 64 << 20),
    ];
    let quoted = |names: Vec<&str>| format!("{names:?}");
    let definition = format!(
        "schema = 1\nname = \"large\"\ntitle = \"t\"\nquestion = \"q\"\nanalysis = \"\"\n[[part]]\nname = \
         \"methods\"\nquestion = \"q\"\nworkload = \"copy\"\nvariants = {}\nsizes = {}\nbaseline = \
         \"read_write:64K\"\n[run]\nschema = 1\nsrc_dir = \"/a\"\ndst_dir = \"/b\"\nseed = 1\nscale = 1.0\n\
         haulage_version = \"0\"\n",
        quoted(VARIANTS.to_vec()),
        quoted(SIZES.iter().map(|size| size.0).collect())
    );
    let mut samples = String::from(
        "cell,part,workload,variant,file_bytes,files,shape,state_wanted,destination,at_once,session,\
         round,repeat,order_in_round,probe_ns,begun_ns,ended_ns,elapsed_ns,state_proved,state_note,\
         refusals,counted\n",
    );
    let mut rng = fastrand::Rng::with_seed(7);
    let cells = SIZES.len() * VARIANTS.len();
    for run in 0..SAMPLES {
        let at = run as usize % cells;
        let (name, bytes) = SIZES[at / VARIANTS.len()];
        let variant = VARIANTS[at % VARIANTS.len()];
        let round = run / u32::try_from(cells).expect("few cells");
        let elapsed = 5_000 + bytes / 4 + rng.u64(..bytes / 8 + 1_000);
        let begun = u64::from(run) * 1_000_000;
        let _ = writeln!(
            samples,
            "methods/{name},methods,copy,{variant},{bytes},1,file,warm,fresh,1,{},{},0,1,{},{begun},{},\
             {elapsed},warm,,,true",
            round / 16 + 1,
            round % 16 + 1,
            900 + rng.u64(..200),
            begun + elapsed
        );
    }
    std::fs::write(home.join("experiment.toml"), definition).expect("written");
    std::fs::write(home.join("environment.json"), "{}").expect("written");
    std::fs::write(home.join("samples.csv"), samples).expect("written");
    let verdict = "{\"schema\":1,\"question\":\"q\",\"delta\":0.02,\"delta_from\":\"\",\"parts\":[],\"notes\":[]}";
    std::fs::write(home.join("verdict.json"), verdict).expect("written");
}

#[test]
fn the_page_of_200_000_samples_stays_small() {
    let home = tempfile::tempdir().expect("a directory");
    large(home.path());
    let sources = [Source::read(home.path()).expect("the run can be read")];
    let report = Report::of(&sources);
    let page = page::render(&report, home.path());
    assert!(page.len() < PAGE_BYTES_MAX, "{} bytes", page.len());
    let thinned = report.figures.iter().flat_map(|figure| &figure.notes);
    let said = thinned.filter(|note| note.contains("of 200,000 runs are drawn")).count();
    assert_eq!(said, 1, "what is left out is said once");
}
