//! What all ranks must have in common.

use serde::{Deserialize, Serialize};

/// The version of the program, the working directory, from which operands are looked up, and what
/// decides about owners and modes of new files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    version: String,
    directory: Vec<u8>,
    user: String,
    /// Three octal digits or more; empty if it is unknown.
    umask: String,
}

impl Place {
    pub(crate) fn own() -> Place {
        use std::os::unix::ffi::OsStringExt;
        let directory = std::env::current_dir().unwrap_or_default();
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        Place {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            directory: directory.into_os_string().into_vec(),
            user: rustix::process::geteuid().as_raw().to_string(),
            umask: umask_in(&status).unwrap_or_default().to_owned(),
        }
    }

    /// Whether ranks at both places copy the same in the same way.
    pub(crate) fn agrees_with(&self, other: &Place) -> bool {
        let is_known = !self.umask.is_empty() && !other.umask.is_empty();
        (&self.version, &self.directory, &self.user)
            == (&other.version, &other.directory, &other.user)
            && (!is_known || self.umask == other.umask)
    }

    /// The place as text in a message.
    pub(crate) fn shown(&self) -> String {
        let Place { version, directory, user, umask } = self;
        let umask = if umask.is_empty() { "unknown" } else { umask };
        let directory = String::from_utf8_lossy(directory);
        format!("haulage {version} in {directory} as user {user} with umask {umask}")
    }
}

/// The umask in /proc/self/status since Linux 4.7.
fn umask_in(status: &str) -> Option<&str> {
    status.lines().find_map(|line| line.strip_prefix("Umask:")).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_umask_is_not_compared() {
        let with = |umask: &str| Place { umask: umask.into(), ..Place::own() };
        for (a, b, agree) in [
            ("0022", "0022", true),
            ("0022", "0077", false),
            ("", "0077", true),
            ("0022", "", true),
        ] {
            assert_eq!(with(a).agrees_with(&with(b)), agree, "{a:?} and {b:?}");
        }
        assert!(!Place { user: "x".into(), ..with("") }.agrees_with(&with("")));
        assert!(!Place { directory: vec![], ..with("") }.agrees_with(&with("")));
    }

    #[test]
    fn the_umask_is_found() {
        assert_eq!(umask_in("Name:\tx\nUmask:\t0027\nState:\tR\n"), Some("0027"));
        assert_eq!(umask_in("Name:\tx\n"), None);
        assert!(umask_in(&std::fs::read_to_string("/proc/self/status").expect("read")).is_some());
    }
}
