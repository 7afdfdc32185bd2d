//! Times a command that copies, from before its start to after its end.
//!
//! The command line is split as a shell would, without a shell. `{src}` and `{dst}` stand for the
//! source and for a destination of the run, `{src}/*` for each entry of the source, `{dst}/` for a destination that is
//! an empty directory before the run; `haulage` is this program. Processor time, page faults
//! and device bytes are those of the command and of the children that it waited for, plus what this
//! process spends to start it. The output is shown only if the command fails.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use rustix::fs::{Access, MemfdFlags};

use super::cached_source::{CachedSource, StartedRun};
use super::interface::{Needs, ReadyVariant, Setting, StartResult, Workload};
use super::tree::Tree;
use crate::clock::{Clock, note_durable};
use crate::definition::cell::{Cell, Destination};
use crate::error::Error;
use crate::sample::measurement::Measurement;
use crate::scratch::WorkDir;
use crate::scratch::files::remove;
use crate::trial::NotRun;

pub(crate) static COMMAND: Workload = Workload {
    name: "command",
    variants: "a command line with {src} and {dst}, as cp -r {src} {dst}; haulage is this program",
    check: |variant| parse(variant).map(drop),
    start,
    needs,
    has_state: true,
    can_be_durable: true,
    calls_of_run: None,
};

/// The most bytes of a command's output that are shown.
const WORDS_BYTES_MAX: usize = 2000;

/// The words of a command line.
fn parse(text: &str) -> Result<Vec<String>, String> {
    let words = shell_words::split(text).map_err(|_| "a quote is not closed".to_owned())?;
    if words.is_empty() {
        return Err("there is no command".to_owned());
    }
    for (place, what) in [("{src}", "source"), ("{dst}", "destination")] {
        if !words.iter().skip(1).any(|word| word.contains(place)) {
            return Err(format!("{place} is missing: the {what} goes there"));
        }
    }
    Ok(words)
}

/// The words with the placeholders replaced by paths; `entries` are those of the source.
fn with(words: &[String], ends: (&OsStr, &OsStr), entries: &[OsString]) -> Vec<OsString> {
    let filled = |word: &String| match word == EACH_ENTRY {
        true => entries.to_vec(),
        false => vec![filled_in(word, ends)],
    };
    words.iter().flat_map(filled).collect()
}

/// The paths of the source's entries in order, if a word stands for them.
fn entries(words: &[String], source: &Path) -> Result<Vec<OsString>, Error> {
    if !words.iter().any(|word| word == EACH_ENTRY) {
        return Ok(Vec::new());
    }
    let listed = std::fs::read_dir(source)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path().into_os_string())).collect());
    let mut entries: Vec<OsString> = listed.map_err(Error::path("cannot list", source))?;
    entries.sort();
    Ok(entries)
}

/// The word that stands for each entry of the source.
const EACH_ENTRY: &str = "{src}/*";

/// The word that stands for a destination that is a directory before the run.
const INTO_DIRECTORY: &str = "{dst}/";

/// Splits before it joins, so that a path that looks like a placeholder is not replaced again.
fn filled_in(word: &str, (src, dst): (&OsStr, &OsStr)) -> OsString {
    let with_dst = |piece: &str| {
        piece.split("{dst}").map(str::as_bytes).collect::<Vec<_>>().join(dst.as_bytes())
    };
    let pieces: Vec<Vec<u8>> = word.split("{src}").map(with_dst).collect();
    OsString::from_vec(pieces.join(src.as_bytes()))
}

fn needs(cell: &Cell) -> Needs {
    let bytes = cell.run_bytes();
    Needs { src_bytes: bytes, dst_bytes: bytes, ..Needs::default() }
}

struct Commanding {
    text: String,
    words: Vec<OsString>,
    cached: CachedSource,
    tree: Tree,
    dst: PathBuf,
    dir: WorkDir,
    destination: Destination,
    /// The destination is an empty directory before the run.
    into_directory: bool,
    durable: bool,
}

fn start(setting: &Setting<'_>, text: &str) -> StartResult {
    let written = parse(text)?;
    let cached = CachedSource::open(setting)?;
    let name = format!("command-{}-{}", std::process::id(), fastrand::u32(..));
    let dst = setting.dirs.dst.path().join(name);
    let src = cached.source.path();
    let ends = (src.as_os_str(), dst.as_os_str());
    let mut words = with(&written, ends, &entries(&written, src)?);
    // `haulage` is this program, even if another one is on the PATH.
    if words[0] == "haulage" {
        let myself = std::env::current_exe().map_err(Error::path("cannot find", "haulage"))?;
        words[0] = myself.into_os_string();
    }
    if !is_there(&words[0]) {
        return Err(no_such_program(&words[0]).into());
    }
    Ok(Box::new(Commanding {
        text: text.to_owned(),
        words,
        tree: Tree::of(&cached)?,
        cached,
        dst,
        dir: WorkDir::open(setting.dirs.dst.path())?,
        destination: setting.cell.destination,
        into_directory: written.iter().any(|word| word == INTO_DIRECTORY),
        durable: setting.cell.durable,
    }))
}

fn no_such_program(program: &OsStr) -> String {
    format!("no such program: '{}'", program.display())
}

/// Whether execvp(3) would find the program.
fn is_there(program: &OsStr) -> bool {
    let runs = |path: &Path| path.is_file() && rustix::fs::access(path, Access::EXEC_OK).is_ok();
    if program.as_bytes().contains(&b'/') {
        return runs(Path::new(program));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| runs(&dir.join(program)))
}

impl Commanding {
    /// No destination, or one with other bytes in every file.
    fn prepare(&self) -> Result<(), Error> {
        remove(&self.dst)?;
        match self.destination {
            Destination::Fresh if self.into_directory => {
                std::fs::create_dir(&self.dst).map_err(Error::path("cannot create", &self.dst))
            }
            Destination::Fresh => Ok(()),
            Destination::Overwritten => self.tree.make_zeros(&self.dir, &self.dst),
        }
    }

    /// Runs the command under the clock. `None` when there is no such program after all.
    fn execute(
        &self,
        clock: Clock<'_>,
        measured: &mut Measurement,
        words: &File,
    ) -> Result<Option<ExitStatus>, Error> {
        let cannot = |error: std::io::Error| Error::Command {
            command: self.text.clone(),
            how: format!("could not be started: {error}"),
            words: String::new(),
        };
        let mut command = Command::new(&self.words[0]);
        command
            .args(&self.words[1..])
            .stdin(Stdio::null())
            .stdout(words.try_clone().map_err(cannot)?)
            .stderr(words.try_clone().map_err(cannot)?);
        match clock.time(measured, || command.status()) {
            Ok(status) => Ok(Some(status)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(cannot(error)),
        }
    }

    /// Waits until all of the destination's file system is on the medium: it is unknown which files
    /// a command synced, and whether it made others.
    fn sync(&self, measured: &mut Measurement) -> Result<(), Error> {
        if self.durable {
            rustix::fs::syncfs(self.dir.dir()).map_err(Error::path("cannot sync", &self.dst))?;
            note_durable(measured);
        }
        Ok(())
    }

    /// Derives from what happened what is not known of a command beforehand.
    fn judge(&self, started: StartedRun, measured: &mut Measurement) {
        let bytes = self.cached.load.bytes;
        measured.shares_extents = measured.dst_resident_bytes_after == Some(0)
            && measured.device_written_bytes.is_some_and(|written| written < bytes / 2);
        // With every page of the source there before and after, what devices read meanwhile is the
        // program itself, or it was read past the cache.
        let all = Some(bytes);
        let bypasses_cache =
            measured.src_resident_bytes_before == all && measured.src_resident_bytes_after == all;
        self.cached.judge(started, measured, bypasses_cache);
    }
}

/// A file in memory for the output of a command: a pipe would need a reader meanwhile.
fn caught() -> Result<File, Error> {
    let fd = rustix::fs::memfd_create("words", MemfdFlags::CLOEXEC)
        .map_err(Error::path("cannot make", "a file in memory"))?;
    Ok(File::from(fd))
}

/// The output that was caught, or its end.
fn words_in(caught: &File) -> String {
    let len = caught.metadata().map_or(0, |metadata| metadata.len());
    let mut bytes = vec![0; WORDS_BYTES_MAX.min(usize::try_from(len).unwrap_or(usize::MAX))];
    // What cannot be read back is not there.
    let from = len - bytes.len() as u64;
    let read = caught.read_exact_at(&mut bytes, from);
    read.map(|()| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

impl ReadyVariant for Commanding {
    fn run(&mut self, clock: Clock<'_>) -> Result<Measurement, NotRun> {
        self.prepare()?;
        let caught = caught()?;
        let dst_before = match self.destination {
            Destination::Fresh => Some(0),
            Destination::Overwritten => self.tree.resident_bytes(&self.dst),
        };
        let started = self.cached.begin()?;
        let mut measured = Measurement::default();
        let Some(status) = self.execute(clock, &mut measured, &caught)? else {
            return Err(no_such_program(&self.words[0]).into());
        };
        self.sync(&mut measured)?;
        self.cached.took(&started, &mut measured)?;
        // The waiting of this thread is not that of the command, and may be for the command.
        measured.processor_wait_ns = None;
        if !status.success() {
            let how = match status.code() {
                Some(code) => format!("ended with status {code}"),
                None => format!("was ended: {status}"),
            };
            let words = words_in(&caught);
            let command = self.text.clone();
            return Err(Error::Command { command, how, words }.into());
        }
        let dst_after = self.tree.resident_bytes(&self.dst);
        if let Some(how) = self.tree.difference(&self.dst)? {
            // The command is not to blame when another process wrote to the source meanwhile.
            self.cached.check_unchanged()?;
            return Err(Error::Wrong { variant: self.text.clone(), how }.into());
        }
        // All of it has just been read. If no page is counted even now (overlayfs), the counts mean
        // nothing.
        let counted = dst_after != Some(0) || self.tree.resident_bytes(&self.dst) != Some(0);
        measured.dst_resident_bytes_before = dst_before.filter(|_| counted);
        measured.dst_resident_bytes_after = dst_after.filter(|_| counted);
        measured.verified = true;
        self.judge(started, &mut measured);
        remove(&self.dst)?;
        Ok(measured)
    }
}

impl Drop for Commanding {
    fn drop(&mut self) {
        // Files that cannot be removed go with the scratch directory.
        let _ = remove(&self.dst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::cell::Shape;
    use crate::page_cache::state::{Proof, State};
    use crate::workload::tests::TestCell;

    const BYTES: u64 = (3 << 20) + 77;

    fn failure(trial: &TestCell, command: &str) -> Error {
        let result = trial.started(command).run(Clock::default());
        let error = result.expect_err("it fails").refusal().expect_err("it is no refusal");
        assert_eq!(trial.left(), Vec::<String>::new(), "{command} leaves files behind");
        error
    }

    #[test]
    fn words_are_filled_in_once() {
        let line = parse("dd bs=64K 'if={src}' of={dst}.x \"a b\" {other}").expect("parsed");
        let odd = OsStr::from_bytes(b"/s {dst} \xff");
        let words = with(&line, (odd, OsStr::new("/d")), &[]);
        let expected: Vec<&[u8]> =
            vec![b"dd", b"bs=64K", b"if=/s {dst} \xff", b"of=/d.x", b"a b", b"{other}"];
        assert_eq!(words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn commands_copy_files() {
        let mut trial = TestCell::new(&COMMAND, BYTES);
        for destination in [Destination::Fresh, Destination::Overwritten] {
            trial.cell.destination = destination;
            for command in ["cp {src} {dst}", "dd bs=64K if={src} of={dst} status=none"] {
                let measured = trial.run(command);
                assert!(measured.verified && measured.counted, "{}", measured.state_note);
                assert!(measured.elapsed_ns > 100_000, "{measured:?}");
                // The command's own faults: those of any process.
                assert!(measured.minor_faults > 50, "{measured:?}");
                assert_eq!(measured.processor_wait_ns, None, "it waits for the command");
            }
        }
    }

    #[test]
    fn commands_copy_directories() {
        let mut trial = TestCell::new(&COMMAND, 5000);
        trial.cell.files = 40;
        for shape in [Shape::Flat, Shape::Tree, Shape::MixedTree] {
            (trial.cell.shape, trial.cell.destination) = (shape, Destination::Fresh);
            assert!(trial.run("cp -r {src} {dst}").verified, "{shape:?}");
            trial.cell.destination = Destination::Overwritten;
            assert!(trial.run("cp -r {src}/. {dst}").verified, "{shape:?}");
        }
        trial.cell.destination = Destination::Fresh;
        assert!(trial.run("cp -r {src}/* {dst}/").verified, "each entry is an operand");
    }

    #[test]
    fn cold_bytes_come_from_the_device_and_durable_ones_go_there() {
        testfs::each_fs(|kind, dir| {
            let mut trial = TestCell::new_in(&COMMAND, BYTES, dir);
            trial.cell.durable = true;
            let cold = kind != testfs::FsKind::Tmpfs;
            trial.cell.state = if cold { State::Cold } else { State::Warm };
            let measured = trial.run("dd bs=64K if={src} of={dst} status=none");
            assert!(measured.counted, "{kind}: {}", measured.state_note);
            assert!(measured.durable_ns.is_some_and(|ns| ns > measured.elapsed_ns), "{kind}");
            assert!(!measured.shares_extents, "{kind}");
            if cold {
                assert_eq!(measured.state_proved, Proof::Cold, "{kind}: {}", measured.state_note);
                assert!(measured.device_read_bytes.is_some_and(|bytes| bytes >= BYTES), "{kind}");
            }
            if kind.reflinks() {
                trial.cell.durable = false;
                assert!(trial.run("cp --reflink=always {src} {dst}").shares_extents, "{kind}");
            }
        });
    }

    #[test]
    fn what_copies_wrongly_is_found() {
        let mut trial = TestCell::new(&COMMAND, BYTES);
        let check = |trial: &TestCell, command: &str, expected: &str| {
            let error = failure(trial, command);
            assert!(matches!(error, Error::Wrong { .. } | Error::WrongCopy { .. }), "{error}");
            assert!(error.to_string().contains(expected), "{command}: {error}");
        };
        for (command, expected) in [
            ("sh -c 'head -c 100 $0 > $1' {src} {dst}", "has 100 bytes and not 3145805"),
            (
                "sh -c 'cp $0 $1; printf ab | dd of=$1 bs=1 seek=3000000 conv=notrunc' {src} {dst}",
                "has other bytes in the MiB at offset 2097152",
            ),
            ("true {src} {dst}", "it made no destination"),
            ("ln -s {src} {dst}", "'{dst}' is of another kind"),
            ("mkdir {dst} {src}.d", "'{dst}' is of another kind"),
        ] {
            check(&trial, command, expected);
        }
        (trial.cell.files, trial.cell.shape) = (20, Shape::Tree);
        for (command, expected) in [
            ("sh -c 'cp -r $0 $1; rm $1/d1/f16' {src} {dst}", "'{dst}/d1/f16' is missing"),
            ("sh -c 'cp -r $0 $1; touch $1/more' {src} {dst}", "'{dst}/more' is not in the source"),
            ("sh -c 'cp -r $0 $1; cp $1/f1 $1/f2' {src} {dst}", "'{dst}/f2' has other bytes"),
            (
                "sh -c 'cp -r $0 $1; rmdir $1/d1 || rm -r $1/d1; touch $1/d1' {src} {dst}",
                "'{dst}/d1'",
            ),
        ] {
            check(&trial, command, expected);
        }
    }

    #[test]
    fn a_failure_comes_with_its_words() {
        let trial = TestCell::new(&COMMAND, 100);
        let error = failure(&trial, "cp --no-such-option {src} {dst}");
        let told = error.to_string();
        assert!(!matches!(error, Error::Wrong { .. } | Error::WrongCopy { .. }));
        assert!(told.contains("ended with status 1: cp: unrecognized option"), "{told}");
        let told = failure(&trial, "sh -c 'kill -9 $$' {src} {dst}").to_string();
        assert!(told.contains("was ended: signal: 9"), "{told}");
    }

    #[test]
    fn a_program_that_is_not_there_is_refused() {
        let mut trial = TestCell::new(&COMMAND, 100);
        for program in ["no-such-copier", "/no/such/copier", "/etc/passwd"] {
            let why = trial.refusal(&format!("{program} {{src}} {{dst}}"));
            assert_eq!(why, format!("no such program: '{program}'"));
        }
    }
}
