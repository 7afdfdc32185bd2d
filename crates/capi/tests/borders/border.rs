//! The ways in which a program calls the copier, each as one function.

use std::ffi::{CString, OsString, c_char, c_int, c_void};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use haulage::Copy;
// Links the library.
use haulage_capi as _;

unsafe extern "C" {
    fn haulage_copy_file(src: *const c_char, dst: *const c_char, state: *mut c_void) -> c_int;
    fn haulage_copy_tree(src: *const c_char, dst: *const c_char, state: *mut c_void) -> c_int;
    fn haulage_copy_fds(src: c_int, dst: c_int, state: *mut c_void) -> c_int;
    fn copyfile(from: *const c_char, to: *const c_char, state: *mut c_void, flags: u32) -> c_int;
    fn fcopyfile(from: c_int, to: c_int, state: *mut c_void, flags: u32) -> c_int;
}

const COPYFILE_DATA: u32 = 1 << 3;
const COPYFILE_RECURSIVE: u32 = 1 << 15;

/// Where a program meets the copier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Border {
    /// The crate `haulage`.
    Rust,
    /// haulage.h.
    C,
    /// copyfile.h.
    Copyfile,
    /// The package for Python, in a process of its own for each copy.
    Python,
}

/// What is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    File,
    /// Symbolic links as links, into an existing directory or a new one.
    Tree,
}

/// The errno of an exception that has none, such as `SameFileError`.
pub(crate) const NO_ERRNO: i32 = 200;

/// The interpreter that has the package, by HAULAGE_PYTHON.
fn python() -> Option<OsString> {
    std::env::var_os("HAULAGE_PYTHON")
}

impl Border {
    /// The borders that are tried: Python, if `cargo xtask python` runs the tests, which has installed the
    /// package, and the others otherwise.
    pub(crate) fn all() -> Vec<Border> {
        match python() {
            Some(_) => vec![Border::Python],
            None => vec![Border::Rust, Border::C, Border::Copyfile],
        }
    }

    /// The errno of a copy; 0 if it succeeded.
    pub(crate) fn copy(self, what: What, src: &Path, dst: &Path) -> i32 {
        let text = |path: &Path| CString::new(path.as_os_str().as_bytes()).expect("no zero byte");
        let (from, to) = (text(src), text(dst));
        let (from, to, none) = (from.as_ptr(), to.as_ptr(), std::ptr::null_mut());
        match (self, what) {
            (Border::Rust, What::File) => {
                haulage::copy_file(src, dst).map_or_else(|error| error.errno(), |_| 0)
            }
            (Border::Rust, What::Tree) => match Copy::new(src, dst).recursive().run() {
                Ok(_) => 0,
                Err(failed) => failed.first().map_or(libc::ECANCELED, haulage::Error::errno),
            },
            // SAFETY: both are strings, and no state is given.
            (Border::C, What::File) => errno_of(unsafe { haulage_copy_file(from, to, none) }),
            // SAFETY: as above.
            (Border::C, What::Tree) => errno_of(unsafe { haulage_copy_tree(from, to, none) }),
            (Border::Copyfile, What::File) => {
                // SAFETY: as above.
                errno_of(unsafe { copyfile(from, to, none, COPYFILE_DATA) })
            }
            (Border::Copyfile, What::Tree) => {
                // Into an existing directory, not below it.
                let from = text(&src.join(""));
                let flags = COPYFILE_DATA | COPYFILE_RECURSIVE;
                // SAFETY: as above.
                errno_of(unsafe { copyfile(from.as_ptr(), to, none, flags) })
            }
            (Border::Python, _) => {
                let ended = self.program(what, src, dst).status().expect("the interpreter ran");
                ended.code().unwrap_or_else(|| panic!("{what:?} by Python: {ended}"))
            }
        }
    }

    /// The errno of a copy between two descriptors. The package for Python has none.
    pub(crate) fn copy_open(self, src: BorrowedFd<'_>, dst: BorrowedFd<'_>) -> Option<i32> {
        let (from, to, none) = (src.as_raw_fd(), dst.as_raw_fd(), std::ptr::null_mut());
        match self {
            Border::Rust => {
                let copied = haulage::copy_descriptors(src, dst);
                Some(copied.map_or_else(|error| error.errno(), |_| 0))
            }
            // SAFETY: both are open, and no state is given.
            Border::C => Some(errno_of(unsafe { haulage_copy_fds(from, to, none) })),
            // SAFETY: as above.
            Border::Copyfile => Some(errno_of(unsafe { fcopyfile(from, to, none, COPYFILE_DATA) })),
            Border::Python => None,
        }
    }

    /// A process that copies once, and exits with the errno.
    pub(crate) fn program(self, what: What, src: &Path, dst: &Path) -> Command {
        let word = if what == What::File { "file" } else { "tree" };
        let here = |path: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(path);
        let mut command = match self {
            Border::Python => {
                let mut command = Command::new(python().expect("it is there"));
                command.arg(here("borders/driver.py"));
                command
            }
            _ => {
                let mut command = Command::new(std::env::current_exe().expect("this program"));
                command.args(["--exact", "processes::driver", "--nocapture"]);
                command.env("HAULAGE_BORDER", format!("{self:?}"));
                command
            }
        };
        if self == Border::Python {
            command.arg(word).arg(src).arg(dst);
        } else {
            command.env("HAULAGE_BORDER_WHAT", word);
            command.env("HAULAGE_BORDER_SRC", src).env("HAULAGE_BORDER_DST", dst);
        }
        command
    }

    /// The border, and the arguments, that [`Border::program`] has given to this process.
    pub(crate) fn of_process() -> Option<(Border, What, PathBuf, PathBuf)> {
        let name = std::env::var("HAULAGE_BORDER").ok()?;
        let border = Border::all().into_iter().find(|border| format!("{border:?}") == name)?;
        let what = match std::env::var("HAULAGE_BORDER_WHAT").ok()?.as_str() {
            "file" => What::File,
            _ => What::Tree,
        };
        let path = |name: &str| std::env::var_os(name).map(PathBuf::from);
        Some((border, what, path("HAULAGE_BORDER_SRC")?, path("HAULAGE_BORDER_DST")?))
    }
}

fn errno_of(status: c_int) -> i32 {
    match status {
        0 => 0,
        _ => std::io::Error::last_os_error().raw_os_error().expect("an errno"),
    }
}
