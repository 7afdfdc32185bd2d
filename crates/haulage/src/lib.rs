//! Copies files and trees on Linux the fastest safe way.
//!
//! | to copy | call |
//! |---|---|
//! | a file, by its path | [`copy_file`] |
//! | a file that is open | [`copy_descriptors`] |
//! | a tree, or a file with options | [`struct@Copy`] |
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let home = tempfile::tempdir()?;
//! # let (src, dst) = (home.path().join("src"), home.path().join("dst"));
//! # std::fs::create_dir(&src)?;
//! # std::fs::write(src.join("file"), "some bytes")?;
//! let report = haulage::Copy::new(&src, &dst).recursive().archive().verify().run()?;
//! println!("{} files, {} bytes", report.files(), report.data_bytes());
//! # assert_eq!((report.files(), report.data_bytes()), (1, 10));
//! # Ok(())
//! # }
//! ```
//!
//! What a copy promises:
//!
//! - The byte count is exact. A short copy, a read error and a full disk are errors.
//! - Below the names that a program gives, a symbolic link that is swapped in during the copy is never
//!   followed.
//! - No handler of a signal is installed, unless [`Copy::allow_sigbus_handler`] allows it. Nothing is
//!   printed, and no descriptor of the program is closed.
//!
//! An error has the path, the operation and the errno:
//!
//! ```
//! use haulage::{Operation, copy_file};
//!
//! let error = copy_file("/nonexistent", "copy").expect_err("there is no such file");
//! assert_eq!(error.operation(), Operation::Look);
//! assert_eq!(error.path(), Some("/nonexistent".as_ref()));
//! assert_eq!(error.errno(), 2);
//! assert_eq!(error.to_string(), "cannot stat '/nonexistent': No such file or directory");
//! ```
//!
//! [`CancelToken`] cancels a copy from another thread, and each callback of [`struct@Copy`] may end it:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let home = tempfile::tempdir()?;
//! # let (src, dst) = (home.path().join("src"), home.path().join("dst"));
//! # std::fs::create_dir(&src)?;
//! # std::fs::write(src.join("file"), "some bytes")?;
//! use haulage::{CancelToken, Control, Copy};
//!
//! let token = CancelToken::new();
//! // Another thread would do this.
//! token.cancel();
//! let failed = Copy::new(&src, &dst)
//!     .recursive()
//!     .cancel(&token)
//!     .on_error(|error| {
//!         eprintln!("{error}");
//!         Control::Quit
//!     })
//!     .run()
//!     .expect_err("it was cancelled");
//! assert!(failed.cancelled);
//! # Ok(())
//! # }
//! ```
//!
//! The command `haulage cp` uses this crate and no other way to copy. It prints the messages of GNU cp
//! from [`events`].
//!
//! # Versions
//!
//! The crate follows [Semantic Versioning](https://semver.org/spec/v2.0.0.html). Before 1.0 a new minor
//! version may break what a program uses, and a new patch version does not. Structures and
//! enumerations in [`options`] and [`events`] get fields and variants with a minor version.
//!
//! The minimum supported Rust version is in `rust-version` of the manifest. It rises with a minor
//! version only, and is at most the stable version of half a year before. Linux 5.10 or later is
//! needed.

#![deny(missing_docs)]

mod cancel;
mod copy;
mod error;
pub mod events;
mod file;
pub mod options;
pub mod partners;
pub mod prediction;
mod progress;
mod report;
mod session;
mod totals;

pub use cancel::{CancelToken, Control};
pub use copy::Copy;
pub use engines::{ParseError as ParseVariantError, Variant};
pub use error::{Error, Operation};
pub use file::{copy_descriptors, copy_descriptors_with, copy_file, copy_file_with};
pub use progress::Progress;
pub use report::{CopyFailed, ERRORS_KEPT_MAX, Report};
pub use totals::{Copied, EngineTotals, Kind, Outcome, RunTotals};
