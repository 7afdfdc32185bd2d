//! The journal of `--resume` and its partial file, after damage.

use std::fs;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use engines::{Moved, Span, Variant};
use tree::{Destination, Diagnostic, Observer, Options, Request};

use super::silent::Silent;
use crate::scratch;
use crate::target::Target;

pub(crate) const TARGET: Target = Target {
    name: "journal",
    about: "steps that damage a journal of --resume and its partial file",
    run,
    input_bytes_max: 512,
    dictionary: "journal",
};

/// Six chunks of 1 MiB, and some bytes more.
const FILE_BYTES: usize = (6 << 20) + 4321;

/// What an interrupted copy left.
struct Interrupted {
    dir: PathBuf,
    src: Vec<u8>,
    partial: Vec<u8>,
    journal: Vec<u8>,
}

/// The bytes by which a journal is recognised.
const MAGIC_BYTES: usize = 8;

const PARTIAL: &str = ".dst.haulage-part";
const JOURNAL: &str = ".dst.haulage-journal";

fn run(input: &[u8]) {
    static INTERRUPTED: OnceLock<Interrupted> = OnceLock::new();
    let Interrupted { dir, src, partial, journal } = INTERRUPTED.get_or_init(interrupted);
    let whole = journal;
    let (mut partial, mut journal) = (partial.clone(), journal.clone());
    let mut steps = Bytes(input);
    while let Some(step) = steps.next() {
        damage(step, &mut steps, &mut partial, &mut journal);
    }
    for (name, bytes) in [(PARTIAL, &partial), (JOURNAL, &journal)] {
        let mut options = fs::File::options();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(dir.join(name));
        file.and_then(|file| file.write_all_at(bytes, 0)).expect("a scratch file");
    }
    let outcome = tree::copy(&request(dir), &options(), &Silent);
    assert_eq!(outcome.failures, 0, "nothing fails");
    let copy = fs::read(dir.join("dst")).expect("the copy is there");
    assert!(copy == *src, "the copy is that of the source, whatever the journal says");
    fs::remove_file(dir.join("dst")).expect("removed");
    // A file that does not begin as a journal is not ours, and the other one may not be.
    let begins_with = journal.len().min(MAGIC_BYTES);
    if journal[..begins_with] != whole[..begins_with] {
        for (name, bytes) in [(PARTIAL, &partial), (JOURNAL, &journal)] {
            if let Ok(left) = fs::read(dir.join(name)) {
                assert!(left == *bytes, "{name} is left alone");
                fs::remove_file(dir.join(name)).expect("removed");
            }
        }
    }
    assert_eq!(testfs::names_in(dir), ["src"], "nothing of ours is left");
}

/// The rest of the input.
struct Bytes<'i>(&'i [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn number(&mut self) -> usize {
        (0..4).fold(0, |number, _| number << 8 | usize::from(self.next().unwrap_or(0)))
    }

    fn some(&mut self) -> Vec<u8> {
        let len = usize::from(self.next().unwrap_or(0)).min(self.0.len());
        let (taken, rest) = self.0.split_at(len);
        self.0 = rest;
        taken.to_vec()
    }
}

/// One change. Every byte is a step, so that every input is one.
fn damage(step: u8, steps: &mut Bytes<'_>, partial: &mut Vec<u8>, journal: &mut Vec<u8>) {
    let file = if step & 0x80 == 0 { journal } else { partial };
    let at = steps.number() % (file.len() + 1);
    match step & 0x7f {
        step if step < 0x20 => file.truncate(at),
        step if step < 0x40 => {
            let with = steps.some();
            let end = (at + with.len()).min(file.len());
            file.splice(at..end, with);
        }
        step if step < 0x50 => {
            let with = steps.some();
            file.splice(at..at, with);
        }
        step if step < 0x60 => {
            let end = (at + usize::from(steps.next().unwrap_or(0))).min(file.len());
            file.drain(at..end);
        }
        step if step < 0x70 => {
            let end = (at + 24).min(file.len());
            let again = file[at..end].to_vec();
            file.extend(again);
        }
        _ => {
            let len = steps.number() % (2 * FILE_BYTES);
            file.resize(len, 0);
        }
    }
}

fn interrupted() -> Interrupted {
    let dir = scratch::empty_dir("journal");
    let src = testfs::random_bytes(FILE_BYTES, 1);
    fs::write(dir.join("src"), &src).expect("written");
    let _ = tree::copy(&request(&dir), &options(), &After::default());
    let read = |name: &str| fs::read(dir.join(name)).expect("an interrupted copy leaves it");
    let (partial, journal) = (read(PARTIAL), read(JOURNAL));
    assert!(journal.len() > 72 + 2 * 24, "the journal has records");
    Interrupted { src, partial, journal, dir }
}

fn request(dir: &std::path::Path) -> Request {
    Request {
        sources: vec![dir.join("src").into_os_string()],
        destination: Destination::Exact(dir.join("dst").into_os_string()),
    }
}

fn options() -> Options {
    Options { atomic: true, resume: true, ..Options::archive() }
}

/// Interrupts a copy after 4 MiB.
#[derive(Default)]
struct After(AtomicU64);

impl Observer for After {
    fn diagnose(&self, _: Diagnostic) {}

    fn moved(&self, _: &Variant, _: Span, moved: Moved) {
        self.0.fetch_add(moved.bytes, Ordering::Relaxed);
    }

    fn interrupted(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= 4 << 20
    }
}
