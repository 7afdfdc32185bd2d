//! `--receipt`: one line of JSON for each entry, and one for the run. Fields come from
//! `haulage::events::Receipt` (report/receipt.rs of the crate tree). docs/receipt.md describes the lines; a test compares it with
//! this file.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use engines::{Pos, Side, Stop};
use haulage::events::{Attempt, Chosen, Diagnostic, Errno, FileId, Loss, Receipt, words_of_error};
use haulage::{Kind, Outcome, RunTotals};
use serde::Serialize;

use crate::cp::job::Job;
use crate::cp::messages::errno_name::errno_name;
use crate::cp::messages::quote;
use crate::cp::messages::wording;
use crate::cp::receipt::clock::Cost;
use crate::cp::receipt::part_file::{PartFile, directory_above, id_of, left_over};

/// The file that receipts go to. Workers share it; each writes whole lines.
pub(crate) struct Receipts {
    name: Vec<u8>,
    file: Option<FileId>,
    began: SystemTime,
    out: Mutex<Out>,
    /// The name that the file has until it is complete, if that is another one.
    part: Option<PartFile>,
}

struct Out {
    /// `None` after the first error: the lines after a gap would look complete.
    writer: Option<Writer>,
}

enum Writer {
    File(BufWriter<File>),
    /// Rank 0 of a job writes the file.
    Rank0(Arc<dyn Job>),
}

impl Receipts {
    /// Opens `name` for writing and truncates it; `-` is standard output.
    ///
    /// # Errors
    /// The error line.
    pub(crate) fn open(name: &OsStr, operands: &[impl AsRef<Path>]) -> Result<Receipts, Vec<u8>> {
        let quoted = quote::name(name);
        let cannot = |error: &std::io::Error| cannot_open(&quoted, error);
        let file = if name == "-" {
            std::io::stdout().as_fd().try_clone_to_owned().map(File::from)
        } else {
            File::options().write(true).create(true).truncate(false).open(name)
        };
        let file = file.map_err(|error| cannot(&error))?;
        if name != "-" {
            // Truncated only if it is no operand: a source must not be lost.
            if operands.iter().any(|operand| is_same_file(&file, operand.as_ref())) {
                return Err(is_operand(&quoted));
            }
            if identity(&file).is_some() {
                file.set_len(0).map_err(|error| cannot(&error))?;
            }
        }
        Ok(Receipts {
            name: quoted,
            file: identity(&file),
            began: SystemTime::now(),
            out: Mutex::new(Out { writer: Some(Writer::File(BufWriter::new(file))) }),
            part: None,
        })
    }

    /// Opens `name` for the receipts of all ranks of a job, on rank 0. A regular file is written under
    /// another name until the job has ended, so that its receipts are those of all ranks. Returns also lines
    /// with the names of files that killed jobs have left.
    ///
    /// # Errors
    /// The error line.
    pub(crate) fn open_for_job(
        name: &OsStr,
        (sources, operands): (&[&Path], &[&Path]),
    ) -> Result<(Receipts, Vec<u8>), Vec<u8>> {
        let path = Path::new(name);
        let is_special = path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir());
        if name == "-" || is_special {
            return Ok((Receipts::open(name, operands)?, Vec::new()));
        }
        let quoted = quote::name(name);
        let is_it = |operand: &&Path| File::open(path).is_ok_and(|it| is_same_file(&it, operand));
        if operands.iter().any(is_it) {
            return Err(is_operand(&quoted));
        }
        if let Some(source) = directory_above(path, sources) {
            // Only this rank would know the file that grows, and must not be copied.
            let source = quote::name(source);
            let why = [&b" is below "[..], &source, b", and cannot be the receipt\n"].concat();
            return Err([b"cp: ", &quoted[..], &why].concat());
        }
        let left: Vec<u8> = left_over(path)
            .iter()
            .flat_map(|left| {
                let left = quote::name(left);
                [b"cp: ", &left[..], b" has the receipts of a job that did not end\n"].concat()
            })
            .collect();
        let (part, file) = PartFile::create(path).map_err(|error| cannot_open(&quoted, &error))?;
        let receipts = Receipts {
            name: quote::name(part.path()),
            file: part.replaced().or_else(|| identity(&file)),
            began: SystemTime::now(),
            out: Mutex::new(Out { writer: Some(Writer::File(BufWriter::new(file))) }),
            part: Some(part),
        };
        Ok((receipts, left))
    }

    /// The receipts of another rank, whose lines rank 0 writes to the file `name`.
    pub(crate) fn of_rank(name: &OsStr, job: &Arc<dyn Job>) -> Receipts {
        let found = Path::new(name).metadata().ok().filter(std::fs::Metadata::is_file);
        Receipts {
            name: quote::name(name),
            // If it exists before the job.
            file: found.as_ref().map(id_of),
            began: SystemTime::now(),
            out: Mutex::new(Out { writer: Some(Writer::Rank0(job.clone())) }),
            part: None,
        }
    }

    /// The file, if it is a regular one: a copy must not replace it.
    pub(crate) fn file(&self) -> Option<FileId> {
        self.file
    }

    /// Writes the line of an entry.
    ///
    /// # Errors
    /// The error line; only the first time.
    pub(crate) fn entry(&self, receipt: &Receipt) -> Result<(), Vec<u8>> {
        self.lines(&line(&Entry::of(receipt)))
    }

    /// Writes whole lines.
    ///
    /// # Errors
    /// The error line; only the first time.
    pub(crate) fn lines(&self, lines: &[u8]) -> Result<(), Vec<u8>> {
        let result = self.lock().write(lines);
        self.error_line(result)
    }

    /// Writes what is still buffered.
    ///
    /// # Errors
    /// The error line; only the first time.
    pub(crate) fn flush(&self) -> Result<(), Vec<u8>> {
        let result = self.lock().flush();
        self.error_line(result)
    }

    /// Writes the line of the run, and what is still buffered. If all ranks have ended, the file of a
    /// job gets its name.
    ///
    /// # Errors
    /// The error line, if no line was returned before; or one that tells where the receipts are.
    pub(crate) fn finish(&self, end: &End<'_>, has_ended: bool) -> Result<(), Vec<u8>> {
        let line = line(&Summary::of(end, self.began));
        let mut out = self.lock();
        let result = out.write(&line).and_then(|()| out.flush());
        self.error_line(result)?;
        let (Some(part), Some(Writer::File(file))) = (&self.part, &out.writer) else {
            return Ok(());
        };
        if !has_ended {
            return Err([b"cp: the receipts so far are in ", &self.name[..], b"\n"].concat());
        }
        let completed = part.complete(file.get_ref());
        if completed.is_err() {
            out.writer = None;
        }
        completed.map_err(|error| {
            let words = words_of_error(&error);
            let why = [b": ", words.as_bytes(), b"\n"].concat();
            [b"cp: the receipts stay in ", &self.name[..], &why].concat()
        })
    }

    /// Whether every line was written so far.
    pub(crate) fn is_complete(&self) -> bool {
        self.lock().writer.is_some()
    }

    fn error_line(&self, result: std::io::Result<()>) -> Result<(), Vec<u8>> {
        result.map_err(|error| {
            let words = words_of_error(&error);
            [b"cp: error writing ", &self.name[..], b": ", words.as_bytes(), b"\n"].concat()
        })
    }

    /// After a panic the file still has only whole lines.
    fn lock(&self) -> MutexGuard<'_, Out> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Out {
    fn write(&mut self, lines: &[u8]) -> std::io::Result<()> {
        self.attempt(|writer| match writer {
            Writer::File(writer) => writer.write_all(lines),
            Writer::Rank0(job) => {
                job.put_receipt(lines);
                Ok(())
            }
        })
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.attempt(|writer| match writer {
            Writer::File(writer) => writer.flush(),
            // What is under way arrives before the rank ends.
            Writer::Rank0(_) => Ok(()),
        })
    }

    fn attempt(
        &mut self,
        write: impl FnOnce(&mut Writer) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        let result = self.writer.as_mut().map_or(Ok(()), write);
        if result.is_err()
            && let Some(Writer::File(writer)) = self.writer.take()
        {
            // Dropping the writer would write once more, after the gap.
            let _ = writer.into_parts();
        }
        result
    }
}

fn cannot_open(quoted: &[u8], error: &std::io::Error) -> Vec<u8> {
    let words = words_of_error(error);
    [b"cp: cannot open ", quoted, b" for writing: ", words.as_bytes(), b"\n"].concat()
}

fn is_operand(quoted: &[u8]) -> Vec<u8> {
    [b"cp: ", quoted, b" is to be copied, and cannot be the receipt\n"].concat()
}

/// Device and inode of a regular file.
fn identity(file: &File) -> Option<FileId> {
    let metadata = file.metadata().ok().filter(|metadata| metadata.is_file())?;
    Some(id_of(&metadata))
}

fn is_same_file(file: &File, path: &Path) -> bool {
    let (Ok(file), Ok(other)) = (file.metadata(), path.metadata()) else { return false };
    file.is_file() && id_of(&file) == id_of(&other)
}

fn line(record: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(record).expect("strings and numbers only");
    line.push(b'\n');
    line
}

/// How a run ended.
pub(crate) struct End<'e> {
    pub(crate) totals: &'e RunTotals,
    pub(crate) cost: Cost,
    pub(crate) failures: u64,
    /// The signal that ended it.
    pub(crate) signal: Option<&'e str>,
    /// What is not on the medium yet; `None` for a job.
    pub(crate) unwritten_bytes: Option<u64>,
    /// The arguments of the process.
    pub(crate) argv: &'e [OsString],
}

/// Bytes in JSON: a string if they are UTF-8, else hexadecimal digits.
#[derive(Serialize)]
#[serde(untagged)]
enum Text<'t> {
    Utf8(&'t str),
    Other { bytes: String },
}

impl Text<'_> {
    fn of(bytes: &[u8]) -> Text<'_> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Text::Utf8(text),
            Err(_) => {
                Text::Other { bytes: bytes.iter().map(|byte| format!("{byte:02x}")).collect() }
            }
        }
    }

    fn of_path(path: &Path) -> Text<'_> {
        Text::of(path.as_os_str().as_bytes())
    }
}

#[derive(Serialize)]
struct Entry<'r> {
    record: &'static str,
    src: Text<'r>,
    dst: Text<'r>,
    #[serde(rename = "type")]
    kind: &'static str,
    method: &'static str,
    data_bytes: u64,
    hole_bytes: u64,
    chosen: Option<ChosenLine<'r>>,
    attempts: Vec<AttemptLine>,
    kept: Vec<&'static str>,
    lost: Vec<LossLine<'r>>,
    changed: bool,
    verified_xxh3_128: Option<String>,
    verified_past_cache: Option<bool>,
    failures: Vec<Failure>,
    elapsed_ns: u64,
}

#[derive(Serialize)]
struct ChosenLine<'r> {
    variant: String,
    by: &'static str,
    line: Option<&'r str>,
}

#[derive(Serialize)]
struct AttemptLine {
    variant: String,
    offset: Option<u64>,
    asked_bytes: u64,
    bytes: u64,
    stop: &'static str,
    side: Option<&'static str>,
    errno: Option<ErrnoLine>,
}

#[derive(Serialize)]
struct LossLine<'r> {
    attribute: &'static str,
    name: Option<Text<'r>>,
    errno: ErrnoLine,
}

#[derive(Serialize)]
struct Failure {
    message: String,
    errno: Option<ErrnoLine>,
}

#[derive(Serialize)]
struct ErrnoLine {
    name: Option<&'static str>,
    number: i32,
}

impl ErrnoLine {
    fn of(errno: Errno) -> ErrnoLine {
        ErrnoLine { name: errno_name(errno), number: errno.raw_os_error() }
    }
}

impl<'r> Entry<'r> {
    fn of(receipt: &'r Receipt) -> Entry<'r> {
        Entry {
            record: "entry",
            src: Text::of_path(&receipt.src),
            dst: Text::of_path(&receipt.dst),
            kind: Kind::of(receipt.kind).word(),
            method: receipt.method.word(),
            data_bytes: receipt.data_bytes,
            hole_bytes: receipt.hole_bytes,
            chosen: receipt.chosen.as_ref().map(ChosenLine::of),
            attempts: receipt.attempts.iter().map(AttemptLine::of).collect(),
            kept: receipt.kept.iter().map(|kept| kept.word()).collect(),
            lost: receipt.lost.iter().map(LossLine::of).collect(),
            changed: receipt.changed,
            verified_xxh3_128: receipt.verified.map(|found| format!("{:032x}", found.digest)),
            verified_past_cache: receipt.verified.map(|found| found.past_cache),
            failures: receipt.failures.iter().map(Failure::of).collect(),
            elapsed_ns: receipt.elapsed_ns,
        }
    }
}

impl<'r> ChosenLine<'r> {
    fn of(chosen: &'r Chosen) -> ChosenLine<'r> {
        ChosenLine {
            variant: chosen.variant.to_string(),
            by: chosen.by.word(),
            line: chosen.by.line(),
        }
    }
}

impl AttemptLine {
    fn of(attempt: &Attempt) -> AttemptLine {
        let stop = attempt.moved.stop;
        AttemptLine {
            variant: attempt.variant.to_string(),
            offset: match attempt.span.src {
                Pos::At(offset) => Some(offset),
                Pos::Here => None,
            },
            asked_bytes: attempt.span.len,
            bytes: attempt.moved.bytes,
            stop: stop.word(),
            side: match stop {
                Stop::Failed { side: Side::Src, .. } => Some("src"),
                Stop::Failed { side: Side::Dst, .. } => Some("dst"),
                Stop::Failed { side: Side::Pair, .. } => Some("pair"),
                Stop::Done | Stop::Eof | Stop::Refused(_) => None,
            },
            errno: stop.errno().map(ErrnoLine::of),
        }
    }
}

impl LossLine<'_> {
    fn of(loss: &Loss) -> LossLine<'_> {
        LossLine {
            attribute: loss.attribute().word(),
            name: match loss {
                Loss::Xattr(name, _) if !name.is_empty() => Some(Text::of(name)),
                _ => None,
            },
            errno: ErrnoLine::of(loss.errno()),
        }
    }
}

impl Failure {
    fn of(diagnostic: &Diagnostic) -> Failure {
        let message = wording::of_diagnostic(diagnostic);
        Failure {
            message: String::from_utf8_lossy(&message).trim_end().to_owned(),
            errno: diagnostic.errno().map(ErrnoLine::of),
        }
    }
}

#[derive(Serialize)]
struct Summary<'s> {
    record: &'static str,
    version: &'static str,
    /// `None` if uname(2) fails.
    kernel: Option<String>,
    argv: Vec<Text<'s>>,
    complete: bool,
    signal: Option<&'s str>,
    failures: u64,
    entries: Vec<EntriesLine>,
    data_bytes: u64,
    shared_bytes: u64,
    hole_bytes: u64,
    variants: Vec<VariantLine<'s>>,
    chosen: Vec<ChosenFiles<'s>>,
    changed: u64,
    with_losses: u64,
    left_over: u64,
    unwritten_bytes: Option<u64>,
    began_unix_ns: u64,
    elapsed_ns: u64,
    user_ns: u64,
    system_ns: u64,
}

#[derive(Serialize)]
struct EntriesLine {
    #[serde(rename = "type")]
    kind: &'static str,
    outcome: &'static str,
    count: u64,
}

#[derive(Serialize)]
struct VariantLine<'s> {
    variant: &'s str,
    files: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct ChosenFiles<'s> {
    by: &'s str,
    files: u64,
}

impl<'s> Summary<'s> {
    fn of(end: &End<'s>, began: SystemTime) -> Summary<'s> {
        let totals = end.totals;
        Summary {
            record: "summary",
            version: env!("CARGO_PKG_VERSION"),
            kernel: engines::sys::uname().ok().map(|names| names.release),
            argv: end.argv.iter().map(|word| Text::of(word.as_bytes())).collect(),
            complete: end.failures == 0 && end.signal.is_none(),
            signal: end.signal,
            failures: end.failures,
            entries: totals.entries.iter().map(EntriesLine::of).collect(),
            data_bytes: totals.data_bytes,
            shared_bytes: totals.shared_bytes,
            hole_bytes: totals.hole_bytes,
            variants: totals
                .variants
                .iter()
                .map(|(variant, share)| VariantLine {
                    variant,
                    files: share.files,
                    bytes: share.bytes,
                })
                .collect(),
            chosen: totals
                .chosen
                .iter()
                .map(|(by, files)| ChosenFiles { by, files: *files })
                .collect(),
            changed: totals.changed,
            with_losses: totals.with_losses,
            left_over: totals.left_over,
            unwritten_bytes: end.unwritten_bytes,
            began_unix_ns: nanoseconds(began.duration_since(UNIX_EPOCH).unwrap_or_default()),
            elapsed_ns: nanoseconds(end.cost.elapsed),
            user_ns: nanoseconds(end.cost.user),
            system_ns: nanoseconds(end.cost.system),
        }
    }
}

impl EntriesLine {
    fn of((&(kind, outcome), &count): (&(Kind, Outcome), &u64)) -> EntriesLine {
        let outcome = match outcome {
            Outcome::Copied => "copied",
            Outcome::Linked => "linked",
            Outcome::Skipped => "skipped",
            Outcome::Failed => "failed",
        };
        EntriesLine { kind: kind.word(), outcome, count }
    }
}

fn nanoseconds(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
