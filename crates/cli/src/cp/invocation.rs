//! The name that the program was called as, for messages.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::sync::OnceLock;

/// Whether a program called as `name` is `cp`: the last component is `cp`.
pub(crate) fn is_cp(name: &OsStr) -> bool {
    Path::new(name).file_name() == Some(OsStr::new("cp"))
}

/// Whether this process was called as `cp`, not as a subcommand of `haulage`.
pub(crate) fn is_called_cp() -> bool {
    std::env::args_os().next().is_some_and(|name| is_cp(&name))
}

/// The command that runs this program, for help texts.
pub(crate) fn in_full() -> String {
    let name = String::from_utf8_lossy(name());
    if is_called_cp() { name.into_owned() } else { format!("haulage {name}") }
}

/// The name as it was called, with its directories; `cp` for the subcommand.
pub(crate) fn name() -> &'static [u8] {
    static NAME: OnceLock<Vec<u8>> = OnceLock::new();
    NAME.get_or_init(|| {
        let given = std::env::args_os().next().filter(|name| is_cp(name));
        given.unwrap_or_else(|| OsString::from("cp")).into_vec()
    })
}
