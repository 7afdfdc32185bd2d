//! The environment of the parser, as a value that tests can set.

use std::ffi::OsString;
use std::path::Path;

use engines::profile::Location;

/// The environment variables and the kernel feature that change the meaning of a command line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment {
    /// POSIXLY_CORRECT is set: options end at the first operand.
    pub(crate) posixly_correct: bool,
    /// SIMPLE_BACKUP_SUFFIX.
    pub(crate) simple_backup_suffix: Option<OsString>,
    /// VERSION_CONTROL.
    pub(crate) version_control: Option<OsString>,
    /// HAULAGE_PROFILE, else the user's profile.
    pub(crate) profile: Location,
    /// The kernel runs with SELinux.
    pub(crate) selinux: bool,
}

impl Environment {
    /// That of this process.
    pub(crate) fn of_process() -> Environment {
        Environment {
            posixly_correct: std::env::var_os("POSIXLY_CORRECT").is_some(),
            simple_backup_suffix: std::env::var_os("SIMPLE_BACKUP_SUFFIX"),
            version_control: std::env::var_os("VERSION_CONTROL"),
            profile: Location::of_process(),
            // The file exists if selinuxfs is mounted, which is the case only with SELinux.
            selinux: Path::new("/sys/fs/selinux/enforce").exists(),
        }
    }
}
