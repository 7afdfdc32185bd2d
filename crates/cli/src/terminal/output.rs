//! Standard output: writing to it, its width, and styles.

use std::io::{IsTerminal, Write};

use anstyle::Style;
use anyhow::Context;

use super::live_lines;

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();

/// The width of a text for a file or a pipe.
const COLUMNS_OF_FILE: usize = 100;

/// Tables are unreadable in fewer columns.
const COLUMNS_MIN: usize = 40;

/// Writes `text` to standard output, without styles unless it is a terminal. A reader that has closed
/// the pipe is no error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to standard output"),
    }
}

/// The columns that a text for standard output may take.
pub(crate) fn columns() -> usize {
    let stdout = std::io::stdout();
    let terminal = stdout.is_terminal().then(|| live_lines::columns(&stdout)).flatten();
    terminal.map_or(COLUMNS_OF_FILE, |columns| columns.max(COLUMNS_MIN))
}

/// `text` in `style`, as a line.
pub(crate) fn styled(style: Style, text: &str) -> String {
    let text = text.trim_end();
    format!("{style}{text}{style:#}\n")
}
