//! Standard output and result files: writing to them, their width, and styles.

use std::fs::{File, Metadata};
use std::io::{IsTerminal, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anstyle::{AnsiColor, Style};
use anyhow::{Context, bail};
use serde::Serialize;

use super::command::usage_error;
use super::live_lines;

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();

/// The style of the fastest variant.
pub(crate) const BEST: Style = AnsiColor::Green.on_default().bold();

/// The style of what works here.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();

/// The style of what is slower, or works with a limitation.
pub(crate) const SLOWER: Style = AnsiColor::Yellow.on_default();

/// The style of what does not work here.
pub(crate) const REFUSED: Style = AnsiColor::Red.on_default();

/// The width of a text for a file or a pipe.
const COLUMNS_OF_FILE: usize = 100;

/// Tables are unreadable in fewer columns.
const COLUMNS_MIN: usize = 40;

/// Writes `text` to standard output, without styles unless it is a terminal. A reader that has closed
/// the pipe is no error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    write_to_stdout(anstream::stdout().lock(), text.as_bytes())
}

fn write_to_stdout(mut out: impl Write, bytes: &[u8]) -> anyhow::Result<()> {
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to standard output"),
    }
}

/// `text` without its styles, for a file.
pub(crate) fn without_styles(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

/// `value` as indented JSON that ends with a newline.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(value).context("cannot write JSON")? + "\n")
}

/// The columns that a text for standard output may take.
pub(crate) fn columns() -> usize {
    let stdout = std::io::stdout();
    let terminal = stdout.is_terminal().then(|| live_lines::size(&stdout)).flatten();
    terminal.map_or(COLUMNS_OF_FILE, |(columns, _)| columns.max(COLUMNS_MIN))
}

/// `text` in `style`, as a line.
pub(crate) fn styled(style: Style, text: &str) -> String {
    let text = text.trim_end();
    format!("{style}{text}{style:#}\n")
}

/// Each of `lines` in `style`.
pub(crate) fn styled_lines(style: Style, lines: &str) -> String {
    lines.lines().map(|line| styled(style, line)).collect()
}

/// Where an option such as `--json FILE` writes: a file, or standard output for `-`.
pub(crate) enum ResultFile {
    StandardOutput,
    File(PathBuf, File),
}

impl ResultFile {
    /// Opens the files of two options, as [`ResultFile::open`]. Two results in one place are refused: in a
    /// file the second would replace the first.
    pub(crate) fn open_two(
        options: [(&str, &Option<PathBuf>); 2],
        src: Option<&Path>,
    ) -> anyhow::Result<[Option<ResultFile>; 2]> {
        let open = |path: &Option<PathBuf>| {
            path.as_ref().map(|path| ResultFile::open(path, src)).transpose()
        };
        let [(one, one_path), (other, other_path)] = options;
        let opened = [open(one_path)?, open(other_path)?];
        let fault = match &opened {
            [Some(ResultFile::StandardOutput), Some(ResultFile::StandardOutput)] => {
                "cannot both write to standard output"
            }
            [Some(first), Some(second)] if first.is_same(second) => "name one file",
            _ => return Ok(opened),
        };
        Err(usage_error(format!("{one} and {other} {fault}")))
    }

    /// Opens `path` and keeps its content. Called before a measurement, so that a wrong path does not
    /// cost the time of the measurement. `src`, which is measured, is refused.
    fn open(path: &Path, src: Option<&Path>) -> anyhow::Result<ResultFile> {
        if is_stream(path) {
            return Ok(ResultFile::StandardOutput);
        }
        if src.is_some_and(|src| is_below(path, src)) {
            bail!("'{}' is in the source and cannot take the results", path.display());
        }
        let cannot = || format!("cannot open '{}' for writing", path.display());
        let file = File::options().write(true).create(true).truncate(false).open(path);
        let file = file.with_context(cannot)?;
        let opened = identity(&file.metadata().with_context(cannot)?);
        let src = src.and_then(|src| std::fs::metadata(src).ok());
        if src.is_some_and(|src| identity(&src) == opened) {
            bail!("'{}' is the source and cannot take the results", path.display());
        }
        Ok(ResultFile::File(path.to_owned(), file))
    }

    fn is_same(&self, other: &ResultFile) -> bool {
        let own = self.regular();
        own.is_some() && own == other.regular()
    }

    /// The identity of a regular file.
    fn regular(&self) -> Option<(u64, u64)> {
        let ResultFile::File(_, file) = self else { return None };
        file.metadata().ok().filter(Metadata::is_file).as_ref().map(identity)
    }

    pub(crate) fn is_standard_output(&self) -> bool {
        matches!(self, ResultFile::StandardOutput)
    }

    /// Whether a later write replaces an earlier one.
    pub(crate) fn is_regular(&self) -> bool {
        self.regular().is_some()
    }

    /// Writes `bytes`. Replaces the content of a regular file.
    pub(crate) fn write(&self, bytes: &[u8]) -> anyhow::Result<()> {
        let ResultFile::File(path, file) = self else {
            return write_to_stdout(std::io::stdout().lock(), bytes);
        };
        let mut out: &File = file;
        let empty = match self.is_regular() {
            true => out.rewind().and_then(|()| file.set_len(0)),
            false => Ok(()),
        };
        let written = empty.and_then(|()| out.write_all(bytes));
        written.with_context(|| format!("cannot write '{}'", path.display()))
    }
}

/// Writes `bytes` to the file `path`, which keeps its old content if that fails.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let cannot = || format!("cannot write '{}'", path.display());
    // A device or pipe, as /dev/stdout, cannot be replaced.
    if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return std::fs::write(path, bytes).with_context(cannot);
    }
    let mut part = path.as_os_str().to_owned();
    part.push(format!(".part-{}", std::process::id()));
    let part = PathBuf::from(part);
    let written = std::fs::write(&part, bytes).and_then(|()| std::fs::rename(&part, path));
    written
        .inspect_err(|_| {
            let _ = std::fs::remove_file(&part);
        })
        .with_context(cannot)
}

/// Whether `path` stands for standard input or output.
pub(crate) fn is_stream(path: &Path) -> bool {
    path == Path::new("-")
}

/// The directory that has the name `path`, which need not exist.
pub(crate) fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether `path`, which need not exist, is below the directory `dir`.
fn is_below(path: &Path, dir: &Path) -> bool {
    let real = path.canonicalize().or_else(|_| parent_of(path).canonicalize());
    dir.is_dir() && real.is_ok_and(|real| dir.canonicalize().is_ok_and(|dir| real.starts_with(dir)))
}

/// Whether both paths lead to one file.
pub(crate) fn is_same_file(one: &Path, other: &Path) -> bool {
    let of = |path: &Path| std::fs::metadata(path).ok().as_ref().map(identity);
    of(one).is_some_and(|one| of(other) == Some(one))
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}
