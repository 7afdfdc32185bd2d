//! Trees and command lines made by proptest.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::known::Version;
use super::run::Case;

/// Where items may be. A fifo is found only under names that nothing else has: to open one would
/// block for ever.
const PLACES: &[&str] = &[
    "a", "b", "c", "d", "d/a", "d/b", "d/c", "d/d", "d/d/a", "d/e", "t", "t/a", "t/b", "t/c",
    "t/d", "t/d/a", "t/d/b", "t/d/d", "t/e",
];

const FIFO_PLACES: &[&str] = &["d/p", "d/d/p", "t/p", "t/d/p"];

const SYMLINK_TARGETS: &[&str] =
    &["a", "b", "c", "d", "t", "../a", "../b", "../t", "../d", "nothing"];

const SOURCES: &[&str] =
    &["a", "b", "c", "d", "d/", "d/.", "d/a", "d/d", "t", "t/a", "./a", "nosuch", "a/", "."];

const DESTINATIONS: &[&str] =
    &["t", "t", "t/", "t/d", "t/a", "new", "new/", "a", "b", "c", "d", ".", "t/new", "d/d", "t/."];

const OPTIONS: &str = "-r -r -R -a -p -f -i -n -u -v -l -s -d -L -H -P -T -x --parents \
                       --remove-destination --strip-trailing-slashes --attributes-only \
                       --preserve=links --preserve=timestamps --preserve=all --no-preserve=mode \
                       --no-preserve=timestamps --sparse=always --reflink=never";

/// GNU cp 9.1 puts some backups into the wrong directory.
const OPTIONS_SINCE_9_5: &str = "-b --backup=numbered --backup=simple -S.k --update=none \
                                 --update=none-fail";

/// Cases that GNU cp of this release gets right.
pub(crate) fn case(version: Version) -> impl Strategy<Value = Case> {
    (tree(), line(version)).prop_map(|(tree, line)| Case { tree, line })
}

fn tree() -> impl Strategy<Value = String> {
    let items = proptest::collection::vec((select(PLACES), item()), 1..10);
    let fifos = subsequence(FIFO_PLACES, 0..2);
    (items, fifos).prop_map(|(items, fifos)| {
        let mut tree: BTreeMap<&str, String> = BTreeMap::new();
        let fifos = fifos.into_iter().map(|place| (place, String::from("|")));
        for (place, item) in items.into_iter().chain(fifos) {
            if fits(&tree, place) {
                tree.insert(place, item);
            }
        }
        // A hard link needs what it is a link of.
        let is_file = |name: &str| tree.get(name).is_some_and(|item| item.starts_with('='));
        let whole = tree.iter().filter(|(place, item)| match item.strip_prefix("==") {
            Some(other) => other != **place && is_file(other) && !tree[other].starts_with("=="),
            None => true,
        });
        // Links are made after what they are links of.
        let (links, others): (Vec<_>, Vec<_>) = whole.partition(|(_, item)| item.starts_with("=="));
        let texts = others.into_iter().chain(links).map(|(place, item)| format!("{place}{item}"));
        texts.collect::<Vec<_>>().join("; ")
    })
}

/// Whether nothing above `place` is anything but a directory, and nothing is at it or below it.
fn fits(tree: &BTreeMap<&str, String>, place: &str) -> bool {
    tree.iter().all(|(other, item)| {
        let below =
            |one: &str, two: &str| one.strip_prefix(two).is_some_and(|x| x.starts_with('/'));
        let may_be_above = item.starts_with('/') || !below(place, other);
        *other != place && !below(other, place) && may_be_above
    })
}

/// What follows an item's name.
fn item() -> impl Strategy<Value = String> {
    let seconds = || select(&[1000, 2000, 3000][..]);
    let file = (select(&["", "one", "two"][..]), select(&[644, 600, 755, 444][..]), seconds())
        .prop_map(|(content, mode, t)| format!("={content} mode={mode} t={t}"));
    let directory = (select(&[755, 700, 775, 555][..]), seconds())
        .prop_map(|(mode, t)| format!("/ mode={mode} t={t}"));
    prop_oneof![
        4 => file,
        2 => directory,
        2 => select(SYMLINK_TARGETS).prop_map(|target| format!("->{target}")),
        1 => select(&["a", "b", "d/a"][..]).prop_map(|other| format!("=={other}")),
        1 => Just("~256K@64K".to_owned()),
    ]
}

fn line(version: Version) -> impl Strategy<Value = String> {
    let newer = if version >= Version(9, 5) { OPTIONS_SINCE_9_5 } else { "" };
    let known: Vec<&str> = OPTIONS.split(' ').chain(newer.split_whitespace()).collect();
    let options = subsequence(known, 0..4);
    let sources = proptest::collection::vec(select(SOURCES), 1..3);
    (options, sources, select(DESTINATIONS), any::<bool>()).prop_map(
        |(mut options, sources, destination, yes)| {
            // Links hold the name of whichever of a file's names comes first in a directory.
            if options.contains(&"-s") {
                options.retain(|option| !["-a", "-d"].contains(option));
            }
            let answers = if yes { "<y\\ny\\ny\\ny\\n" } else { "<n\\nn\\nn\\nn\\n" };
            let words = options.into_iter().chain(sources).chain([destination, answers]);
            words.collect::<Vec<_>>().join(" ")
        },
    )
}
