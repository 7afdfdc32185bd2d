use super::Verdict;
use super::conclusion::Conclusion;
use super::resolve::{self, Further, Unresolved};
use crate::analysis::tests::Synthetic;
use crate::conduct;
use crate::definition::cell::{Cell, Destination};
use crate::definition::deltas::LEAST;
use crate::definition::{Order, Part};
use crate::page_cache::state::State;
use crate::stats::Answer;

fn verdict(made: &Synthetic) -> Verdict {
    let cells = conduct::cells(&made.definition, Some(&made.run()));
    Verdict::of(&made.definition, &cells, LEAST, None)
}

fn analysed(made: &Synthetic) -> Verdict {
    verdict(made).analysed(&made.run(), None)
}

fn conclusion(made: &Synthetic) -> Conclusion {
    verdict(made).parts[0].conclusion(&made.definition)
}

/// `said` with `#` in place of its digits: samples are random.
fn without_digits(said: &str) -> String {
    let mut text = said.replace(|c: char| c.is_ascii_digit(), "#");
    while text.contains("##") {
        text = text.replace("##", "#");
    }
    text
}

/// One cell in which each variant takes this share of the baseline's time.
fn measured(variants: &[&str], shares: &[f64]) -> Synthetic {
    let mut made = Synthetic::new("copy", variants, &["1M"]);
    made.measure(20, 4, |_, variant| {
        1e6 * shares[variants.iter().position(|it| *it == variant).expect("one of them")]
    });
    made
}

#[test]
fn one_sentence_answers_for_one_size() {
    const B: &str = "read_write:64K";
    for (variants, shares, expected) in [
        (
            vec![B, "copy_file_range@2", "sendfile"],
            vec![1.0, 0.7, 0.8],
            "On this machine copy_file_range with two workers is the fastest for files of # MiB in \
             the page cache: #.# of the time of read and write, sure to within # %.",
        ),
        // As fast as far as these samples tell.
        (
            vec![B, "sendfile", "splice", "mmap"],
            vec![1.0, 0.7, 0.7, 0.9],
            "sendfile or splice is the fastest for files of # MiB in the page cache, too close to \
             call: #.# and #.# of the time of read and write, sure to within # %.",
        ),
        (
            vec![B, "sendfile", "splice", "mmap", "direct"],
            vec![1.0, 0.7, 0.7, 0.7, 0.7],
            " takes #.# of the time of read and write, sure to within # %.",
        ),
        (
            vec![B, "sendfile", "splice"],
            vec![1.0, 1.2, 1.4],
            "On this machine read and write is the fastest for files of # MiB in the page cache; \
             sendfile comes closest with #.# times its time, sure to within # %.",
        ),
        (
            vec![B, "read_write:64K [again]", "splice"],
            vec![1.0, 1.0, 1.4],
            "On this machine read and write is as fast as any other for files of # MiB in the page \
             cache.",
        ),
        (
            vec![B, "sendfile", "splice"],
            vec![1.0, 0.98, 1.4],
            "On this machine nothing is shown to be faster than read and write for files of # MiB in \
             the page cache; # of # comparisons is too close to call.",
        ),
    ] {
        let found = conclusion(&measured(&variants, &shares));
        assert!(found.rows.is_empty(), "{found:?}");
        let said = without_digits(&found.sentence);
        let said = said.replace("splice or sendfile", "sendfile or splice");
        assert!(said.ends_with(expected), "{said}\nfor {expected}");
    }
}

#[test]
fn the_interval_of_the_sentence_is_that_of_the_verdict() {
    let made = measured(&["read_write:64K", "sendfile"], &[1.0, 0.5]);
    let mut verdict = verdict(&made);
    let said = |verdict: &Verdict| verdict.parts[0].conclusion(&made.definition).sentence;
    for (ratio, low, high, expected) in [
        (0.68, 0.64, 0.73, "0.68 of the time of read and write, sure to within 8 %."),
        (0.68, 0.6797, 0.6802, "0.68 of the time of read and write, sure to within 1 %."),
        (0.0123, 0.0121, 0.0126, "0.012 of the time of read and write, sure to within 3 %."),
        (0.40, 0.10, 0.90, "0.40 of the time of read and write, 95 % interval 0.10 to 0.90."),
    ] {
        let it = &mut verdict.parts[0].cells[0].comparisons[0];
        (it.ratio, it.low, it.high) = (Some(ratio), Some(low), Some(high));
        assert!(said(&verdict).ends_with(expected), "{}\nfor {expected}", said(&verdict));
    }
    let it = &mut verdict.parts[0].cells[0].comparisons[0];
    (it.answer, it.ratio, it.low, it.high) = (Answer::Unresolved, None, None, None);
    let expected = "there were too few sessions to compare for files of 1 MiB in the page cache.";
    assert!(said(&verdict).ends_with(expected), "{}", said(&verdict));
}

#[test]
fn a_variant_whose_interval_reaches_the_leader_is_not_called_slower() {
    let made = measured(&["read_write:64K", "sendfile", "splice"], &[1.0, 0.5, 0.8]);
    let mut verdict = verdict(&made);
    let said = |verdict: &Verdict| verdict.parts[0].conclusion(&made.definition).sentence;
    assert!(said(&verdict).contains(" sendfile is the fastest"), "{}", said(&verdict));
    let leader_high = verdict.parts[0].cells[0].comparisons[0].high;
    let splice = &mut verdict.parts[0].cells[0].comparisons[1];
    (splice.low, splice.answer) = (leader_high, Answer::Unresolved);
    assert!(said(&verdict).contains(" sendfile or splice is the fastest"), "{}", said(&verdict));
    // Without an interval nothing is known of it.
    let splice = &mut verdict.parts[0].cells[0].comparisons[1];
    (splice.ratio, splice.low, splice.high) = (None, None, None);
    let expected = "sendfile or another one is the fastest for files of 1 MiB";
    assert!(said(&verdict).contains(expected), "{}", said(&verdict));
}

#[test]
fn sizes_with_the_same_answer_are_one_row() {
    let sizes = ["4K", "64K", "1M", "16M", "64M"];
    let mut made = Synthetic::new("copy", &["read_write:64K", "read_write:4K", "sendfile"], &sizes);
    made.measure(20, 4, |cell, variant| match (cell.file_bytes, variant) {
        (4096 | 65536, "read_write:64K") => 1e4,
        (4096 | 65536, _) => 1.2e4,
        (_, "sendfile") => 0.7e6,
        (_, "read_write:4K") => 1.5e6,
        _ => 1e6,
    });
    let found = conclusion(&made);
    let common = "On this machine the fastest way for files in the page cache depends on the file size. \
                  Compared with the time of read and write with 64 KiB buffers:";
    assert_eq!(found.sentence, common);
    let rows: Vec<(&str, String)> =
        found.rows.iter().map(|row| (row.files.as_str(), without_digits(&row.text()))).collect();
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert_eq!(rows[0].0, "4 KiB and 64 KiB");
    let expected = "read and write with # KiB buffers is the fastest; ";
    assert!(rows[0].1.starts_with(expected), "{rows:?}");
    assert_eq!(rows[1].0, "1 MiB to 64 MiB");
    let expected = "sendfile is the fastest: #.# to #.# of that time, sure to within # %";
    assert!(rows[1].1.replace("#.# of", "#.# to #.# of").ends_with(expected), "{rows:?}");
    // In one paragraph: for the details of the page and for verdict.json.
    let paragraph = found.paragraph();
    assert!(paragraph.starts_with(common) && paragraph.ends_with("%."), "{paragraph}");
}

/// What is said of two variants, of which one takes in each cell this share of the other's time, and the rows
/// below it.
#[test]
fn what_an_answer_depends_on_is_named() {
    const ALL: [&str; 10] = ["4K", "8K", "16K", "32K", "64K", "128K", "256K", "512K", "1M", "2M"];
    let check =
        |part: &dyn Fn(&mut Part), share: fn(&Cell) -> f64, expected: &str, rows: &[&str]| {
            let mut made = Synthetic::new("copy", &["read_write:64K", "sendfile"], &["1M", "64M"]);
            part(made.part());
            made.measure(
                20,
                4,
                |cell, variant| if variant == "sendfile" { 1e6 * share(cell) } else { 1e6 },
            );
            let found = conclusion(&made);
            assert!(found.sentence.contains(expected), "{}\n{expected}", found.sentence);
            let files: Vec<&str> = found.rows.iter().map(|row| row.files.as_str()).collect();
            assert_eq!(files, rows, "{expected}");
        };
    let in_both_states = |part: &mut Part| part.states = vec![State::Warm, State::Cold];
    // Nothing is faster in the page cache.
    check(
        &in_both_states,
        |cell| if cell.state == State::Cold { 0.7 } else { 1.0 },
        "the fastest way for files of 1 MiB and 64 MiB depends on whether the source is in the page cache. ",
        &["in the page cache", "not in the page cache"],
    );
    check(
        &|part| part.destinations = vec![Destination::Fresh, Destination::Overwritten],
        |cell| if cell.destination == Destination::Overwritten { 0.7 } else { 1.0 },
        "the fastest way for files of 1 MiB and 64 MiB depends on whether the destination exists. ",
        &["to new ones, in the page cache", "over existing ones, in the page cache"],
    );
    check(
        &|part| part.at_once = vec![1, 2],
        |cell| if cell.at_once == 2 { 0.7 } else { 1.0 },
        "the fastest way for files of 1 MiB and 64 MiB depends on how many are copied at once. ",
        &["in the page cache", "in the page cache, 2 at once"],
    );
    check(
        &in_both_states,
        |cell| if cell.state == State::Cold && cell.file_bytes < 2 << 20 { 0.7 } else { 1.0 },
        "the fastest way depends on the file size and whether the source is in the page cache. ",
        &[
            "1 MiB and 64 MiB, in the page cache",
            "1 MiB, not in the page cache",
            "64 MiB, not in the page cache",
        ],
    );
    check(
        &|_| (),
        |cell| if cell.file_bytes < 2 << 20 { 0.7 } else { 1.0 },
        "the fastest way for files in the page cache depends on the file size. ",
        &["1 MiB", "64 MiB"],
    );
    check(
        &|_| (),
        |cell| if cell.file_bytes < 2 << 20 { 1.0 } else { 1.5 },
        "On this machine nothing is shown to be faster than read and write for files in the page cache. \
         In detail:",
        &["1 MiB", "64 MiB"],
    );
    check(
        &|part| {
            in_both_states(part);
            part.destinations = vec![Destination::Overwritten];
        },
        |cell| if cell.state == State::Warm { 0.7 } else { 1.3 },
        "On this machine sendfile is the fastest for files of 1 MiB and 64 MiB over existing ones, in the \
         page cache, read and write where they are read from the device. Compared with the time of read \
         and write:",
        &["over existing ones, in the page cache", "over existing ones, not in the page cache"],
    );
    // Very many answers are left to the table.
    check(
        &|part| part.sizes = ALL.map(str::to_owned).to_vec(),
        |cell| if cell.file_bytes.trailing_zeros() % 2 == 1 { 0.7 } else { 1.3 },
        "depends on the file size",
        &["other files", "64 KiB", "128 KiB", "256 KiB", "512 KiB", "1 MiB", "2 MiB"],
    );
}

#[test]
fn too_few_sessions_everywhere_are_one_sentence() {
    let mut made = Synthetic::new("copy", &["read_write:64K", "sendfile"], &["1M"]);
    made.part().states = vec![State::Warm, State::Cold];
    made.measure(1, 4, |_, _| 1e6);
    let sentence = "On this machine there were too few sessions to compare.".to_owned();
    assert_eq!(conclusion(&made), Conclusion { sentence, rows: Vec::new() });
}

#[test]
fn copies_that_share_extents_are_no_answer() {
    let mut made = Synthetic::new("copy", &["read_write:64K", "reflink", "sendfile"], &["1M"]);
    made.measure_with(20, 4, |_, variant, record| {
        record.measured.shares_extents = variant == "reflink";
        match variant {
            "reflink" => 1e4,
            "sendfile" => 0.7e6,
            _ => 1e6,
        }
    });
    let said = analysed(&made).parts[0].conclusion(&made.definition).sentence;
    assert!(said.starts_with("On this machine sendfile is the fastest"), "{said}");
    assert!(said.ends_with(" % (reflink shares extents and moves no bytes)."), "{said}");
}

#[test]
fn the_headline_is_that_of_the_largest_files() {
    let mut made = Synthetic::new("copy", &["read_write:64K", "sendfile", "splice"], &["4K", "1M"]);
    made.measure(20, 4, |cell, variant| match (cell.file_bytes, variant) {
        (4096, _) => 1e4,
        (_, "sendfile") => 0.7e6,
        (_, "splice") => 1.2e6,
        _ => 1e6,
    });
    let part = &analysed(&made).parts[0];
    let said = part.headline(&made.definition);
    let expected = "sendfile is the fastest for files of 1 MiB in the page cache: 0.";
    assert!(said.starts_with(expected), "{said}");
    let counts = part.counts();
    assert!(counts.starts_with("1 faster, 1 slower") && counts.ends_with(" of 4"), "{counts}");
}

#[test]
fn runs_one_after_another_are_no_comparison_to_be_answered() {
    let mut made = Synthetic::new("copy", &["sendfile", "splice"], &["1M"]);
    made.part().order = Order::OneAfterAnother;
    made.measure(1, 10, |_, variant| if variant == "splice" { 2e6 } else { 1e6 });
    let verdict = verdict(&made);
    let part = &verdict.parts[0];
    assert_eq!((verdict.unresolved(&made.definition).of, part.counts()), (0, String::new()));
    assert_eq!(part.conclusion(&made.definition), Conclusion::default());
    assert!(part.sentence.contains("Measured one after another, splice takes 2."), "{part:?}");
}

/// A verdict of two cells whose first comparisons need these seconds.
fn open(needed: [Option<f64>; 2]) -> (Synthetic, Verdict) {
    let mut made = Synthetic::new("copy", &["read_write:64K", "sendfile"], &["4K", "1M"]);
    made.measure(3, 1, |_, _| 1e6);
    let mut verdict = verdict(&made);
    for (cell, seconds) in verdict.parts[0].cells.iter_mut().zip(needed) {
        cell.comparisons[0].answer = Answer::Unresolved;
        cell.comparisons[0].seconds_needed = seconds;
        cell.seconds = 5.0;
    }
    (made, verdict)
}

#[test]
fn what_is_open_is_counted_with_the_time_that_it_would_take() {
    for (needed, expected) in [
        // The first cell ends at the analysis after its 30 seconds.
        ([Some(30.0), Some(90.0)], Some(Further { seconds: 150.0, resolves: 2 })),
        // The second may never end, and has as much time as the first.
        ([Some(30.0), None], Some(Further { seconds: 60.0, resolves: 1 })),
        ([Some(30.0), Some(1e9)], Some(Further { seconds: 60.0, resolves: 1 })),
        ([None, None], None),
    ] {
        let (made, verdict) = open(needed);
        let found = verdict.unresolved(&made.definition);
        assert_eq!((found.part.as_str(), found.too_few), ("part", false));
        let counts = [found.count, found.of, found.main_count, found.main_of];
        assert_eq!((counts, found.further), ([2; 4], expected), "{needed:?}");
    }
    let (made, mut verdict) = open([Some(30.0), None]);
    verdict.parts[0].cells[1].comparisons[0].answer = Answer::Faster;
    let found = verdict.unresolved(&made.definition);
    // The answered cell takes what it took.
    assert_eq!(found.further, Some(Further { seconds: 35.0_f64.ceil() + 5.0, resolves: 1 }));
    assert_eq!((found.count, found.are_most()), (1, false));
}

#[test]
fn the_sentence_about_what_is_open_says_what_to_do() {
    let all = Unresolved {
        count: 186,
        of: 323,
        part: "warm".to_owned(),
        main_count: 41,
        main_of: 95,
        further: Some(Further { seconds: 1500.0, resolves: 33 }),
        too_few: false,
    };
    assert_eq!(
        all.sentence(),
        "Most comparisons are unresolved: 186 of 323, 41 of 95 of the main question (warm). A new \
         run of 25 minutes would resolve about 33 of the 41 of the main question:"
    );
    let few = Unresolved { count: 3, main_count: 3, of: 95, further: None, ..all.clone() };
    assert_eq!(
        few.sentence(),
        "Unresolved: 3 of 95 comparisons. To resolve those of the main question would take more than \
         12 hours."
    );
    let too_few = Unresolved { too_few: true, ..few };
    assert!(too_few.sentence().ends_with(" give it several times as much time (--time)."));
    assert_eq!(Unresolved { count: 0, ..all }.sentence(), "");
}

#[test]
fn the_command_names_what_it_runs() {
    let further = Further { seconds: 60.0, resolves: 1 };
    let made = Synthetic::new("copy", &["read_write:64K", "sendfile"], &["4K"]);
    let mut run = made.run();
    assert_eq!(
        resolve::command(&run, further),
        "haulage bench runs/it/experiment.toml --on /a --time 60"
    );
    let built_in = crate::experiment::library::BuiltIn::by_name("engines").expect("it is there");
    run.definition = built_in.definition().scaled(0.5);
    run.how.scale = 0.5;
    run.how.dst_dir = "/with space/it's".into();
    run.path = "/elsewhere/it".into();
    assert_eq!(
        resolve::command(&run, further),
        "haulage bench engines --scale 0.5 --on /a --on '/with space/it'\\''s' --part warm --runs \
         /elsewhere --time 60"
    );
    assert_eq!(
        resolve::command_in(&run, further, 50),
        "  haulage bench engines --scale 0.5 --on /a --on \\\n    '/with space/it'\\''s' --part warm --runs \\\n    \
         /elsewhere --time 60\n"
    );
    // One part of the built-in experiment is not all of it.
    run.definition = run.definition.only(&["cold".to_owned()]).expect("it has one");
    let said = resolve::command(&run, further);
    assert!(
        said.starts_with("haulage bench engines --scale 0.5 ") && said.contains(" --part cold ")
    );
    // A changed experiment is no longer the built-in one.
    run.definition.parts[0].sizes.pop();
    let said = resolve::command(&run, further);
    assert!(said.starts_with("haulage bench /elsewhere/it/experiment.toml --on /a"), "{said}");
}
