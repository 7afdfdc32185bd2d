//! Random trees and command lines, which proptest can make smaller.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::case::{Case, Persona};
use super::item::{self, Item, Kind};
use super::options::WORDS;

/// Where items may be.
const PLACES: &[&str] = &[
    "a", "b", "c", "d", "d/a", "d/b", "d/c", "d/d", "d/d/a", "d/e", "t", "t/a", "t/b", "t/b~",
    "t/c", "t/d", "t/d/a", "t/d/b", "t/d/d", "t/e",
];

/// Where fifos may be: under names that nothing else has, since to open one blocks for ever.
const FIFO_PLACES: &[&str] = &["d/p", "d/d/p"];

const SYMLINK_TARGETS: &[&str] =
    &["a", "b", "c", "d", "t", "../a", "../b", "../t", "../d", "nothing"];

const SOURCES: &[&str] =
    &["a", "b", "c", "d", "d/", "d/.", "d/a", "d/d", "t", "t/a", "./a", "nosuch"];

const DESTINATIONS: &[&str] =
    &["t", "t", "t/", "t/d", "t/a", "new", "a", "b", "c", "d", ".", "t/new", "d/d", "t/."];

const UMASKS: &[u32] = &[0o022, 0o022, 0o077, 0o002];

/// The most options in one case.
const WORDS_MAX: usize = 5;

pub(super) fn case() -> impl Strategy<Value = Case> {
    let words = subsequence((0..WORDS.len()).collect::<Vec<_>>(), 0..=WORDS_MAX).prop_shuffle();
    let sources = subsequence(SOURCES, 1..=2).prop_shuffle();
    (items(), words, sources, select(DESTINATIONS), any::<bool>(), select(UMASKS)).prop_map(
        |(mut items, indices, sources, destination, is_root, umask)| {
            // What an ordinary user may do to the files of others is no part of the model.
            if !is_root {
                items.iter_mut().for_each(|item| item.owner = None);
            }
            let mut words = Vec::new();
            for word in indices.into_iter().map(|index| &WORDS[index]) {
                let is_first = |known: &&super::options::Word| known.group != word.group;
                if words.iter().all(is_first) {
                    words.push(word);
                }
            }
            Case {
                persona: if is_root { Persona::Root } else { Persona::Nobody },
                umask,
                items,
                words,
                sources: sources.into_iter().map(str::to_owned).collect(),
                destination: destination.to_owned(),
            }
        },
    )
}

/// Items that make a tree together.
fn items() -> impl Strategy<Value = Vec<Item>> {
    let items = proptest::collection::vec((select(PLACES), item()), 2..16);
    let fifos = subsequence(FIFO_PLACES, 0..2);
    (items, fifos).prop_map(|(items, fifos)| {
        let fifos = fifos.into_iter().map(|place| (place, plain(Kind::Fifo)));
        let placed = items.into_iter().chain(fifos);
        let mut placed: Vec<Item> =
            placed.map(|(place, item)| Item { path: place.to_owned(), ..item }).collect();
        // What is above comes first, and what is linked to before its links.
        placed.sort_by_key(|item| (matches!(item.kind, Kind::HardLink(_)), item.path.clone()));
        let mut fitting = Vec::new();
        for item in placed {
            fitting.push(item);
            if item::tree(&fitting, 0).is_err() {
                fitting.pop();
            }
        }
        fitting
    })
}

/// One without a place.
fn item() -> impl Strategy<Value = Item> {
    let text = select(&["", "one", "two"][..]);
    let file_mode = select(&[0o644, 0o600, 0o755, 0o444, 0o200, 0o000][..]);
    let directory_mode = select(&[0o755, 0o700, 0o775, 0o555][..]);
    let kind_and_mode = prop_oneof![
        8 => (text, proptest::option::of(file_mode))
            .prop_map(|(text, mode)| (Kind::Text(text.to_owned()), mode)),
        4 => proptest::option::of(directory_mode).prop_map(|mode| (Kind::Directory, mode)),
        4 => select(SYMLINK_TARGETS).prop_map(|target| (Kind::Symlink(target.to_owned()), None)),
        2 => select(&["a", "b", "d/a"][..])
            .prop_map(|other| (Kind::HardLink(other.to_owned()), None)),
        1 => Just((Kind::Sparse, None)),
    ];
    let seconds = proptest::option::of(select(&[2000, 3000][..]));
    let owner = proptest::option::weighted(0.1, Just(1));
    (kind_and_mode, seconds, owner).prop_map(|((kind, mode), seconds, owner)| match kind {
        // It has the attributes of what it is a link of.
        Kind::HardLink(_) => plain(kind),
        _ => Item { mode, seconds, owner, ..plain(kind) },
    })
}

fn plain(kind: Kind) -> Item {
    Item { path: String::new(), kind, mode: None, seconds: None, owner: None }
}
