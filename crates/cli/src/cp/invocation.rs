//! The name that the program was called by, as messages repeat it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::sync::OnceLock;

/// Whether `name` calls for cp alone: its last component is `cp`, whatever directories stand before.
pub(crate) fn is_cp(name: &OsStr) -> bool {
    Path::new(name).file_name() == Some(OsStr::new("cp"))
}

/// Whether this process was called cp, rather than asked for a subcommand.
pub(crate) fn is_called_cp() -> bool {
    std::env::args_os().next().is_some_and(|name| is_cp(&name))
}

/// What to type to run this cp, and not another.
pub(crate) fn in_full() -> String {
    let name = String::from_utf8_lossy(name());
    if is_called_cp() { name.into_owned() } else { format!("haulage {name}") }
}

/// How the user called cp, which is what to type for help: the word as given, with its
/// directories; `cp` where it is a subcommand.
pub(crate) fn name() -> &'static [u8] {
    static NAME: OnceLock<Vec<u8>> = OnceLock::new();
    NAME.get_or_init(|| {
        let given = std::env::args_os().next().filter(|name| is_cp(name));
        given.unwrap_or_else(|| OsString::from("cp")).into_vec()
    })
}
