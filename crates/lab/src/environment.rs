//! Where an experiment took place: what a reader needs in order to judge or repeat it.

use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{AtFlags, StatxFlags};
use serde::Serialize;

use crate::state::Prover;

/// The machine, the file systems and the program.
#[derive(Clone, Debug, Serialize)]
pub struct Environment {
    /// This program's version.
    pub haulage_version: &'static str,
    /// The commit it was built from, where that was known.
    pub haulage_commit: Option<&'static str>,
    /// Whether it was built with optimisation.
    pub optimized_build: bool,
    /// Kernel name, release and version, as uname(1) shows them.
    pub kernel: String,
    /// Instruction set.
    pub machine: String,
    /// The processor, as the kernel names it.
    pub cpu_model: Option<String>,
    /// Processors this process may use.
    pub cpu_count: usize,
    /// Memory of the machine.
    pub memory_bytes: u64,
    /// Dirty pages beyond which the kernel begins to write them out.
    pub dirty_background_bytes: Option<u64>,
    /// Whether this is a virtual machine. Its host has a cache of its own, which cannot be seen
    /// from inside: cold is cold for the guest only.
    pub virtual_machine: bool,
    /// The C library that the program was built for.
    pub libc: &'static str,
    /// The seed that all orders follow from.
    pub seed: u64,
    /// The source.
    pub src: FileSystem,
    /// The directory for the copies.
    pub dst: FileSystem,
    /// What can be proved of the page cache.
    pub prover: Prover,
}

/// One file system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FileSystem {
    /// The path that was given; bytes that are no text are replaced.
    pub path: String,
    /// Its type: ext4, xfs and so on.
    pub fs_type: Option<String>,
    /// Where it is mounted.
    pub mount_point: Option<String>,
    /// The options of the mount and of the file system.
    pub mount_options: Option<String>,
    /// The device or share it lies on.
    pub device: Option<String>,
}

impl Environment {
    /// Looks around.
    #[must_use]
    pub fn look(
        src: &Path,
        dst: &Path,
        prover: Prover,
        seed: u64,
        haulage_commit: Option<&'static str>,
    ) -> Environment {
        let uname = rustix::system::uname();
        let text = |field: &std::ffi::CStr| field.to_string_lossy().into_owned();
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let after_colon = |name: &str| {
            let line = cpuinfo.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let page_bytes = rustix::param::page_size() as u64;
        Environment {
            haulage_version: env!("CARGO_PKG_VERSION"),
            haulage_commit,
            optimized_build: !cfg!(debug_assertions),
            kernel: format!(
                "{} {} {}",
                text(uname.sysname()),
                text(uname.release()),
                text(uname.version())
            ),
            machine: text(uname.machine()),
            cpu_model: after_colon("model name"),
            cpu_count: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: memory_bytes(),
            dirty_background_bytes: counter("/proc/vmstat", "nr_dirty_background_threshold")
                .map(|pages| pages * page_bytes),
            virtual_machine: after_colon("flags")
                .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            libc: if cfg!(target_env = "musl") { "musl" } else { "glibc" },
            seed,
            src: FileSystem::of(src),
            dst: FileSystem::of(dst),
            prover,
        }
    }
}

impl FileSystem {
    /// The file system that `path` lies on.
    #[must_use]
    pub fn of(path: &Path) -> FileSystem {
        let found = mount_id(path).and_then(|id| {
            let table = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
            table.lines().find_map(|line| parse_mount(line).filter(|(of, _)| *of == id))
        });
        let path = path.to_string_lossy().into_owned();
        match found {
            Some((_, file_system)) => FileSystem { path, ..file_system },
            None => FileSystem { path, ..FileSystem::default() },
        }
    }
}

/// Memory of the machine in bytes.
#[must_use]
pub fn memory_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram * u64::from(info.mem_unit)
}

/// The number after `name` in a file of lines such as /proc/vmstat.
fn counter(file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

/// The kernel's number of the mount: the device number would not do, since btrfs gives each
/// subvolume one that no table lists.
fn mount_id(path: &Path) -> Option<u64> {
    let stat = rustix::fs::statx(
        rustix::fs::CWD.as_fd(),
        path,
        AtFlags::empty(),
        StatxFlags::from_bits_retain(STATX_MNT_ID),
    )
    .ok()?;
    (stat.stx_mask & STATX_MNT_ID != 0).then_some(stat.stx_mnt_id)
}

/// STATX_MNT_ID of linux/stat.h, Linux 5.8.
const STATX_MNT_ID: u32 = 0x1000;

/// A line of /proc/self/mountinfo, proc_pid_mountinfo(5): the mount's number and the rest.
fn parse_mount(line: &str) -> Option<(u64, FileSystem)> {
    let (mount, file_system) = line.split_once(" - ")?;
    let mount: Vec<&str> = mount.split(' ').collect();
    let file_system: Vec<&str> = file_system.split(' ').collect();
    let (&[id, _, _, _, mount_point, options, ..], &[fs_type, device, super_options, ..]) =
        (mount.as_slice(), file_system.as_slice())
    else {
        return None;
    };
    let found = FileSystem {
        path: String::new(),
        fs_type: Some(fs_type.to_owned()),
        mount_point: Some(unescaped(mount_point)),
        mount_options: Some(format!("{options};{super_options}")),
        device: Some(unescaped(device)),
    };
    Some((id.parse().ok()?, found))
}

/// Blanks, tabs, line ends and backslashes stand there as octal numbers.
fn unescaped(text: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(text.to_owned(), |text, (escape, plain)| text.replace(escape, plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_mount_table() {
        let line = "36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 - ext3 /dev/root rw,errors=x";
        let (id, found) = parse_mount(line).expect("well formed");
        assert_eq!(id, 36);
        assert_eq!(found.fs_type.as_deref(), Some("ext3"));
        assert_eq!(found.mount_point.as_deref(), Some("/mnt 2"));
        assert_eq!(found.mount_options.as_deref(), Some("rw,noatime;rw,errors=x"));
        assert_eq!(parse_mount("nonsense"), None);
    }

    #[test]
    fn the_proc_file_system_is_found() {
        let found = FileSystem::of(Path::new("/proc/self/io"));
        assert_eq!(found.fs_type.as_deref(), Some("proc"));
        assert!(memory_bytes() > 1 << 20);
    }
}
