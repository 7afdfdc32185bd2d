//! `--receipt`: one line of JSON for each entry, and one for the run. Fields come from
//! `haulage::events::Receipt` (report/receipt.rs of the crate tree). docs/receipt.md describes the lines; a test compares it with
//! this file.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use engines::{Pos, Side, Stop};
use haulage::events::{Attempt, Chosen, Diagnostic, Errno, FileId, Loss, Receipt, words_of_error};
use haulage::{EngineTotals, Kind, Outcome};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::{Value, json};

use crate::cp::job::Job;
use crate::cp::messages::errno_name::errno_name;
use crate::cp::messages::wording::{self, message};
use crate::cp::receipt::part_file::{PartFile, directory_above, id_of, left_over};
use crate::cp::receipt::rank_summary::JobSummary;

/// The file that receipts go to. Workers share it; each writes whole lines.
pub(crate) struct Receipts {
    name: PathBuf,
    file: Option<FileId>,
    began: SystemTime,
    /// `None` after the first error: the lines after a gap would look complete.
    writer: Mutex<Option<Writer>>,
    /// The name that the file has until it is complete, if that is another one.
    part: Option<PartFile>,
}

enum Writer {
    File(BufWriter<File>),
    /// Rank 0 of a job writes the file.
    Rank0(Arc<dyn Job>),
}

impl Receipts {
    fn new(name: PathBuf, file: Option<FileId>, to: Writer, part: Option<PartFile>) -> Receipts {
        let (writer, began) = (Mutex::new(Some(to)), SystemTime::now());
        Receipts { name, file, began, writer, part }
    }

    /// Opens `name` for writing and truncates it; `-` is standard output.
    ///
    /// # Errors
    /// The error line.
    pub(crate) fn open(name: &Path, operands: &[impl AsRef<Path>]) -> Result<Receipts, Vec<u8>> {
        let cannot = |error: &std::io::Error| cannot_open(name, error);
        let file = if name.as_os_str() == "-" && sys::stdout_was_closed() {
            Err(Errno::BADF.into())
        } else if name.as_os_str() == "-" {
            std::io::stdout().as_fd().try_clone_to_owned().map(File::from)
        } else {
            File::options().write(true).create(true).truncate(false).open(name)
        };
        let file = file.map_err(|error| cannot(&error))?;
        if name.as_os_str() != "-" {
            // Truncated only if it is no operand: a source must not be lost.
            if operands.iter().any(|operand| is_same_file(&file, operand.as_ref())) {
                return Err(is_operand(name));
            }
            if identity(&file).is_some() {
                file.set_len(0).map_err(|error| cannot(&error))?;
            }
        }
        let id = identity(&file);
        Ok(Receipts::new(name.to_owned(), id, Writer::File(BufWriter::new(file)), None))
    }

    /// Opens `name` for the receipts of all ranks of a job, on rank 0. A regular file is written under
    /// another name until the job has ended, so that its receipts are those of all ranks. Returns also lines
    /// with the names of files that killed jobs have left.
    ///
    /// # Errors
    /// The error line.
    pub(crate) fn open_for_job(
        name: &Path,
        (sources, operands): (&[&Path], &[&Path]),
    ) -> Result<(Receipts, Vec<u8>), Vec<u8>> {
        let is_special = name.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir());
        if name.as_os_str() == "-" || is_special {
            return Ok((Receipts::open(name, operands)?, Vec::new()));
        }
        let is_it = |operand: &&Path| File::open(name).is_ok_and(|it| is_same_file(&it, operand));
        if operands.iter().any(is_it) {
            return Err(is_operand(name));
        }
        if let Some(source) = directory_above(name, sources) {
            // Only this rank would know the file that grows, and must not be copied.
            return Err(message("{} is below {}, and cannot be the receipt", &[name, source]));
        }
        let words = "{} has the receipts of a job that did not end";
        let left = left_over(name).iter().flat_map(|left| message(words, &[left])).collect();
        let (part, file) = PartFile::create(name).map_err(|error| cannot_open(name, &error))?;
        let id = part.replaced.or_else(|| identity(&file));
        let (name, out) = (part.path.clone(), Writer::File(BufWriter::new(file)));
        Ok((Receipts::new(name, id, out, Some(part)), left))
    }

    /// The receipts of another rank, whose lines rank 0 writes to the file `name`.
    pub(crate) fn of_rank(name: &Path, job: &Arc<dyn Job>) -> Receipts {
        // If it exists before the job.
        let found = name.metadata().ok().filter(std::fs::Metadata::is_file);
        let id = found.as_ref().map(id_of);
        Receipts::new(name.to_owned(), id, Writer::Rank0(job.clone()), None)
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
        self.lines(&line(&Entry(receipt)))
    }

    /// Writes whole lines.
    ///
    /// # Errors
    /// The error line; only the first time.
    pub(crate) fn lines(&self, lines: &[u8]) -> Result<(), Vec<u8>> {
        self.attempt(&mut self.lock(), |writer| match writer {
            Writer::File(writer) => writer.write_all(lines),
            Writer::Rank0(job) => {
                job.put_receipt(lines);
                Ok(())
            }
        })
    }

    /// Writes what is still buffered.
    ///
    /// # Errors
    /// The error line; only the first time.
    pub(crate) fn flush(&self) -> Result<(), Vec<u8>> {
        self.attempt(&mut self.lock(), |writer| match writer {
            Writer::File(writer) => writer.flush(),
            // What is under way arrives before the rank ends.
            Writer::Rank0(_) => Ok(()),
        })
    }

    /// Writes the line of the run, and what is still buffered. If all ranks have ended, the file of a
    /// job gets its name.
    ///
    /// # Errors
    /// The error line, if no line was returned before; or one that tells where the receipts are.
    pub(crate) fn finish(
        &self,
        run: &JobSummary,
        unwritten_bytes: Option<u64>,
        has_ended: bool,
    ) -> Result<(), Vec<u8>> {
        let line = line(&summary(run, self.began, unwritten_bytes));
        let mut writer = self.lock();
        self.attempt(&mut writer, |writer| {
            let Writer::File(writer) = writer else { return Ok(()) };
            writer.write_all(&line)?;
            writer.flush()?;
            // The file reports what close(2) would; it stays open.
            Ok(sys::flush_as_close(writer.get_ref())?)
        })?;
        let (Some(part), Some(Writer::File(file))) = (&self.part, &*writer) else {
            return Ok(());
        };
        if !has_ended {
            return Err(message("the receipts so far are in {}", &[&self.name]));
        }
        let completed = part.complete(file.get_ref());
        if completed.is_err() {
            *writer = None;
        }
        completed.map_err(|error| {
            let why = words_of_error(&error);
            message(&format!("the receipts stay in {{}}: {why}"), &[&self.name])
        })
    }

    /// Whether every line was written so far.
    pub(crate) fn is_complete(&self) -> bool {
        self.lock().is_some()
    }

    /// Calls `write`, unless an error came before.
    fn attempt(
        &self,
        writer: &mut Option<Writer>,
        write: impl FnOnce(&mut Writer) -> std::io::Result<()>,
    ) -> Result<(), Vec<u8>> {
        let result = writer.as_mut().map_or(Ok(()), write);
        if result.is_err()
            && let Some(Writer::File(writer)) = writer.take()
        {
            // Dropping the writer would write once more, after the gap.
            let _ = writer.into_parts();
        }
        result.map_err(|error| {
            let why = words_of_error(&error);
            message(&format!("error writing {{}}: {why}"), &[&self.name])
        })
    }

    /// After a panic the file still has only whole lines.
    fn lock(&self) -> MutexGuard<'_, Option<Writer>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn cannot_open(name: &Path, error: &std::io::Error) -> Vec<u8> {
    message(&format!("cannot open {{}} for writing: {}", words_of_error(error)), &[name])
}

fn is_operand(name: &Path) -> Vec<u8> {
    message("{} is a source or a destination, and cannot be the receipt", &[name])
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

/// Bytes in JSON: a string if they are UTF-8, else hexadecimal digits.
#[derive(Serialize)]
#[serde(untagged)]
enum Text<'t> {
    Utf8(&'t str),
    Other { bytes: String },
}

fn text_of(bytes: &[u8]) -> Text<'_> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Text::Utf8(text),
        Err(_) => Text::Other { bytes: bytes.iter().map(|byte| format!("{byte:02x}")).collect() },
    }
}

fn errno_of(errno: Errno) -> Value {
    json!({ "name": errno_name(errno), "number": errno.raw_os_error() })
}

/// The line of an entry. As a [`Value`] it would have fifty allocations, and a tree of small files with receipts take a
/// quarter longer.
struct Entry<'r>(&'r Receipt);

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
    errno: Option<Value>,
}

impl Serialize for Entry<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Entry(receipt) = self;
        let chosen = receipt.chosen.as_ref().map(|Chosen { variant, by }| ChosenLine {
            variant: variant.to_string(),
            by: by.word(),
            line: by.line(),
        });
        let attempts: Vec<AttemptLine> = receipt.attempts.iter().map(attempt).collect();
        let kept: Vec<&str> = receipt.kept.iter().map(|kept| kept.word()).collect();
        let lost: Vec<Value> = receipt.lost.iter().map(loss).collect();
        let digest = receipt.verified.map(|found| format!("{:032x}", found.digest));
        let failures: Vec<Value> = receipt.failures.iter().map(failure).collect();
        let mut line = serializer.serialize_map(None)?;
        line.serialize_entry("record", "entry")?;
        line.serialize_entry("src", &text_of(receipt.src.as_os_str().as_bytes()))?;
        line.serialize_entry("dst", &text_of(receipt.dst.as_os_str().as_bytes()))?;
        line.serialize_entry("type", Kind::of(receipt.kind).word())?;
        line.serialize_entry("method", receipt.method.word())?;
        line.serialize_entry("data_bytes", &receipt.data_bytes)?;
        line.serialize_entry("hole_bytes", &receipt.hole_bytes)?;
        line.serialize_entry("chosen", &chosen)?;
        line.serialize_entry("attempts", &attempts)?;
        line.serialize_entry("kept", &kept)?;
        line.serialize_entry("lost", &lost)?;
        line.serialize_entry("changed", &receipt.changed)?;
        line.serialize_entry("verified_xxh3_128", &digest)?;
        let past_cache = receipt.verified.map(|found| found.past_cache);
        line.serialize_entry("verified_past_cache", &past_cache)?;
        line.serialize_entry("failures", &failures)?;
        line.serialize_entry("elapsed_ns", &receipt.elapsed_ns)?;
        line.end()
    }
}

fn attempt(Attempt { variant, span, moved, .. }: &Attempt) -> AttemptLine {
    let offset = match span.src {
        Pos::At(offset) => Some(offset),
        Pos::Here => None,
    };
    let side = match moved.stop {
        Stop::Failed { side: Side::Src, .. } => Some("src"),
        Stop::Failed { side: Side::Dst, .. } => Some("dst"),
        Stop::Failed { side: Side::Pair, .. } => Some("pair"),
        Stop::Done | Stop::Eof | Stop::Refused(_) => None,
    };
    AttemptLine {
        variant: variant.to_string(),
        offset,
        asked_bytes: span.len,
        bytes: moved.bytes,
        stop: moved.stop.word(),
        side,
        errno: moved.stop.errno().map(errno_of),
    }
}

fn loss(loss: &Loss) -> Value {
    let name = match loss {
        Loss::Xattr(name, _) if !name.is_empty() => Some(text_of(name)),
        _ => None,
    };
    json!({ "attribute": loss.attribute().word(), "name": name, "errno": errno_of(loss.errno()) })
}

fn failure(diagnostic: &Diagnostic) -> Value {
    let message = wording::of_diagnostic(diagnostic);
    let message = String::from_utf8_lossy(&message);
    json!({ "message": message.trim_end(), "errno": diagnostic.errno().map(errno_of) })
}

/// The line of a run.
fn summary(run: &JobSummary, began: SystemTime, unwritten_bytes: Option<u64>) -> Value {
    let JobSummary { totals, failures, signal, .. } = run;
    let argv: Vec<OsString> = std::env::args_os().collect();
    let entries = totals.entries.iter().map(|((kind, outcome), count)| {
        let outcome = match outcome {
            Outcome::Copied => "copied",
            Outcome::Linked => "linked",
            Outcome::Skipped => "skipped",
            Outcome::Failed => "failed",
        };
        json!({ "type": kind.word(), "outcome": outcome, "count": count })
    });
    let variants = totals.variants.iter().map(|(variant, EngineTotals { files, bytes })| {
        json!({ "variant": variant, "files": files, "bytes": bytes })
    });
    let chosen = totals.chosen.iter().map(|(by, files)| json!({ "by": by, "files": files }));
    json!({
        "record": "summary",
        "version": env!("CARGO_PKG_VERSION"),
        // Null if uname(2) fails.
        "kernel": sys::uname().ok().map(|names| names.release),
        "argv": argv.iter().map(|word| text_of(word.as_bytes())).collect::<Vec<_>>(),
        "complete": *failures == 0 && signal.is_none(),
        "signal": signal,
        "failures": failures,
        "entries": entries.collect::<Vec<_>>(),
        "data_bytes": totals.data_bytes,
        "shared_bytes": totals.shared_bytes,
        "hole_bytes": totals.hole_bytes,
        "variants": variants.collect::<Vec<_>>(),
        "chosen": chosen.collect::<Vec<_>>(),
        "changed": totals.changed,
        "with_losses": totals.with_losses,
        "left_over": totals.left_over,
        "unwritten_bytes": unwritten_bytes,
        "began_unix_ns": nanoseconds(began.duration_since(UNIX_EPOCH).unwrap_or_default()),
        "elapsed_ns": nanoseconds(run.elapsed),
        "user_ns": nanoseconds(run.user),
        "system_ns": nanoseconds(run.system),
    })
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
