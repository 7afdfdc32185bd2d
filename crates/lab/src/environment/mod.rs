//! The machine, its file systems and this program: what a reader needs to judge a run or to repeat
//! it.

pub mod block_device;

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::SystemTime;

use block_device::BlockDevice;
use engines::mount::Mount;
use rustix::fs::{Mode, OFlags};
use serde::Serialize;
use serde_json::Value;

use crate::page_cache::prover::Prover;

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
    /// The maker of the processor, as it names itself: `GenuineIntel`, `AuthenticAMD`.
    pub cpu_vendor: Option<String>,
    /// The family of the processor.
    pub cpu_family: Option<u32>,
    /// The model within the family.
    pub cpu_model_number: Option<u32>,
    /// The processor, as the kernel names it.
    pub cpu_model: Option<String>,
    /// Bytes of the second-level cache of the first processor; `None` where sysfs does not tell.
    pub cpu_l2_bytes: Option<u64>,
    /// Processors this process may use.
    pub cpu_count: usize,
    /// Memory of the machine.
    pub memory_bytes: u64,
    /// Dirty pages beyond which the kernel begins to write them out.
    pub dirty_background_bytes: Option<u64>,
    /// What one reading of the clock costs, in nanoseconds: the median of many.
    pub clock_ns: u64,
    /// The mitigations of processor vulnerabilities, by the names of the kernel.
    pub mitigations: BTreeMap<String, String>,
    /// Whether this is a virtual machine. Its host has a cache of its own, which cannot be seen
    /// from inside: cold is cold for the guest only.
    pub virtual_machine: bool,
    /// The hypervisor, as it names itself: `KVMKVMKVM`. `None` where there is none, or it cannot be
    /// asked.
    pub hypervisor: Option<String>,
    /// Whether its kernel gives free memory back to the host. A run that uses memory that was free
    /// for long then waits for the host.
    pub reports_free_pages: bool,
    /// The host name.
    pub hostname: String,
    /// The frequency governor of the first processor; `None` where the kernel cannot.
    pub cpu_governor: Option<String>,
    /// When the kernel gives transparent huge pages.
    pub transparent_hugepages: Option<String>,
    /// The C library that the program was built for.
    pub libc: &'static str,
    /// The version of the one that it runs with, where it tells.
    pub libc_version: Option<String>,
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
    /// The type of the file system: ext4, xfs and so on.
    pub fs_type: Option<String>,
    /// Where it is mounted.
    pub mount_point: Option<String>,
    /// The options of the mount and of the file system.
    pub mount_options: Option<String>,
    /// The device or share it lies on.
    pub device: Option<String>,
    /// Bytes of its blocks.
    pub block_bytes: Option<u64>,
    /// The I/O scheduler of that device.
    pub scheduler: Option<String>,
    /// How far ahead the kernel reads from it.
    pub readahead_bytes: Option<u64>,
    /// Whether it is rotational, as the device reports.
    pub rotational: Option<bool>,
    /// The smallest atomic write of the device, in bytes.
    pub physical_block_bytes: Option<u64>,
    /// Whether an ext4 has a journal; `None` for other file systems, and where the kernel does not tell.
    pub journal: Option<bool>,
}

impl Environment {
    /// Reads everything about this machine.
    pub fn look(
        src: &Path,
        dst: &Path,
        prover: Prover,
        seed: u64,
        haulage_commit: Option<&'static str>,
    ) -> Environment {
        let names = sys::Uname::or_unknown();
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let number = |name: &str| of_cpuinfo(&cpuinfo, name)?.parse().ok();
        let page_bytes = rustix::param::page_size() as u64;
        Environment {
            haulage_version: env!("CARGO_PKG_VERSION"),
            haulage_commit,
            optimized_build: !cfg!(debug_assertions),
            kernel: kernel(),
            machine: names.machine,
            cpu_vendor: of_cpuinfo(&cpuinfo, "vendor_id"),
            cpu_family: number("cpu family"),
            cpu_model_number: number("model"),
            cpu_model: engines::profile::cpu_model(),
            cpu_l2_bytes: engines::l2_bytes(),
            cpu_count: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: memory_bytes(),
            dirty_background_bytes: counter("/proc/vmstat", "nr_dirty_background_threshold")
                .map(|pages| pages * page_bytes),
            clock_ns: crate::clock::reading_ns(),
            mitigations: mitigations(),
            virtual_machine: of_cpuinfo(&cpuinfo, "flags")
                .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            hypervisor: sys::hypervisor(),
            reports_free_pages: reports_free_pages(Path::new(BALLOONS))
                && some_block_is_reported(
                    line_of(REPORTING_ORDER).as_deref(),
                    &std::fs::read_to_string("/proc/buddyinfo").unwrap_or_default(),
                ),
            hostname: names.nodename,
            cpu_governor: line_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            transparent_hugepages: line_of("/sys/kernel/mm/transparent_hugepage/enabled")
                .map(|line| chosen(&line)),
            libc: if cfg!(target_env = "musl") { "musl" } else { "glibc" },
            libc_version: sys::libc_version(),
            seed,
            src: FileSystem::of(src),
            dst: FileSystem::of(dst),
            prover,
        }
    }
}

impl FileSystem {
    /// The file system that `path` lies on.
    pub fn of(path: &Path) -> FileSystem {
        let block_bytes = rustix::fs::statvfs(path).ok().map(|stat| stat.f_bsize);
        let given = path.to_string_lossy().into_owned();
        let opened = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        let Some(mount) = opened.ok().and_then(|fd| Mount::of(fd.as_fd())) else {
            return FileSystem { path: given, block_bytes, ..FileSystem::default() };
        };
        let device = &mount.source;
        FileSystem {
            path: given,
            block_bytes,
            scheduler: of_queue(device, "scheduler").map(|line| chosen(&line)),
            readahead_bytes: of_queue(device, "read_ahead_kb")
                .and_then(|kib| Some(kib.trim().parse::<u64>().ok()? * 1024)),
            rotational: of_queue(device, "rotational").map(|line| line.trim() == "1"),
            physical_block_bytes: of_queue(device, "physical_block_size")
                .and_then(|bytes| bytes.trim().parse().ok()),
            journal: has_journal(device),
            fs_type: Some(mount.fs_type),
            mount_point: Some(mount.mount_point),
            mount_options: Some(mount.options),
            device: Some(mount.source),
        }
    }
}

/// The virtio balloons that the kernel has in use.
const BALLOONS: &str = "/sys/bus/virtio/drivers/virtio_balloon";

/// VIRTIO_BALLOON_F_PAGE_REPORTING of the virtio specification 1.2, a bit of a balloon's features.
const PAGE_REPORTING: usize = 5;

/// Whether one of the balloons in the directory `balloons` reports free pages. The features are a
/// text of one digit a bit.
fn reports_free_pages(balloons: &Path) -> bool {
    let devices = std::fs::read_dir(balloons).into_iter().flatten().flatten();
    let features = devices.filter_map(|device| std::fs::read(device.path().join("features")).ok());
    features.into_iter().any(|bits| bits.get(PAGE_REPORTING) == Some(&b'1'))
}

/// The least order of a block of free pages that the kernel reports (since Linux 5.14).
const REPORTING_ORDER: &str = "/sys/module/page_reporting/parameters/page_reporting_order";

/// Whether the kernel has blocks of free pages of the order `least`, from which on it reports them.
/// `buddyinfo` is /proc/buddyinfo: the four words `Node 0, zone Normal`, then a count for each order
/// from 0 on. An order beyond these turns reports off. What cannot be read does not.
fn some_block_is_reported(least: Option<&str>, buddyinfo: &str) -> bool {
    let zones = buddyinfo.lines().map(|zone| zone.split_whitespace().skip(4).count());
    let least = least.and_then(|order| order.parse::<usize>().ok());
    least.zip(zones.max()).is_none_or(|(least, orders)| least < orders)
}

/// The kernel's name, release and version, as uname(1) shows them; `unknown` if uname(2) fails.
pub fn kernel() -> String {
    let sys::Uname { sysname, release, version, .. } = sys::Uname::or_unknown();
    format!("{sysname} {release} {version}")
}

/// What follows the colon in the first line of /proc/cpuinfo with the name `name`.
fn of_cpuinfo(cpuinfo: &str, name: &str) -> Option<String> {
    let mut lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
}

/// Memory of the machine in bytes.
pub fn memory_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram * u64::from(info.mem_unit)
}

/// The number after `name` in a file of lines such as /proc/vmstat.
fn counter(file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

/// A setting of a block device: the kernel's Documentation/block/queue-sysfs.rst. That of a
/// partition is its disk's.
fn of_queue(device: &str, setting: &str) -> Option<String> {
    let device = BlockDevice::named(device)?;
    ["queue", "../queue"].iter().find_map(|queue| device.read(&format!("{queue}/{setting}")))
}

/// Whether the ext4 on `device` has a journal: `journal_task` of the kernel's
/// Documentation/ABI/testing/sysfs-fs-ext4 names its thread.
fn has_journal(device: &str) -> Option<bool> {
    // The kernel's name, where another one was mounted, such as that of a logical volume.
    let device = Path::new(device).canonicalize().ok()?;
    let attribute = Path::new("/sys/fs/ext4").join(device.file_name()?).join("journal_task");
    Some(names_a_thread(&std::fs::read_to_string(attribute).ok()?))
}

/// Whether `journal_task` holds the number of a thread, and not that there is none.
fn names_a_thread(journal_task: &str) -> bool {
    journal_task.trim() != "<none>"
}

/// A file of one line.
fn line_of(file: &str) -> Option<String> {
    Some(std::fs::read_to_string(file).ok()?.trim().to_owned())
}

/// The word in brackets: the scheduler that is chosen among those there are.
fn chosen(line: &str) -> String {
    let inner = line.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inner.map_or(line, |(chosen, _)| chosen).trim().to_owned()
}

/// The mitigation of each processor vulnerability.
fn mitigations() -> BTreeMap<String, String> {
    let Ok(entries) = std::fs::read_dir("/sys/devices/system/cpu/vulnerabilities") else {
        return BTreeMap::new();
    };
    let of = |entry: std::fs::DirEntry| {
        let text = std::fs::read_to_string(entry.path()).ok()?;
        Some((entry.file_name().to_string_lossy().into_owned(), text.trim().to_owned()))
    };
    entries.flatten().filter_map(of).collect()
}

/// The machine's name, with what is no letter or digit replaced.
pub(crate) fn host() -> String {
    let name = sys::uname().map(|names| names.nodename).unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = name.chars().take(40).map(plain).collect();
    if name.is_empty() { "host".to_owned() } else { name }
}

/// The present time in UTC, to the second, as `2026-01-31T23:59:59Z`.
pub fn utc_now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

impl BlockDevice {
    /// The device that `path` lies on; `None` where that is none, or several, or cannot be told:
    /// file systems in memory or on the network, overlays.
    pub fn under(path: &Path) -> Option<BlockDevice> {
        // The mount table names it; the number that stat(2) gives is none of a device on btrfs.
        BlockDevice::named(&FileSystem::of(path).device?)
    }
}

/// A value that could not be read.
pub(crate) const UNKNOWN: &str = "unknown";

/// The fields of a recorded environment as text; of a field within a field, as `dst.mount_options`.
pub fn fields(environment: &Value) -> Vec<(String, String)> {
    let Value::Object(object) = environment else { return Vec::new() };
    let mut rows = Vec::new();
    for (name, value) in object {
        match value {
            Value::Object(_) => {
                let within = fields(value).into_iter();
                rows.extend(within.map(|(of, text)| (format!("{name}.{of}"), text)));
            }
            Value::Null => rows.push((name.clone(), UNKNOWN.to_owned())),
            Value::String(text) => rows.push((name.clone(), text.clone())),
            value => rows.push((name.clone(), value.to_string())),
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduler_stands_in_brackets() {
        assert_eq!(chosen("none mq-deadline [kyber] bfq\n"), "kyber");
        assert_eq!(chosen("none\n"), "none");
    }

    #[test]
    fn a_name_in_cpuinfo_is_the_whole_name() {
        let cpuinfo = "cpu family\t: 26\nmodel name\t: AMD: EPYC\nmodel\t\t: 2\nmodel\t\t: 3\n";
        let of = |name| of_cpuinfo(cpuinfo, name);
        assert_eq!(of("model").as_deref(), Some("2"));
        assert_eq!(of("model name").as_deref(), Some("AMD: EPYC"));
        assert_eq!(of("vendor_id"), None);
    }

    #[test]
    fn only_ext4_is_asked_for_a_journal() {
        testfs::each_fs(|kind, dir| {
            let is_ext4 = kind == testfs::FsKind::Ext4;
            assert_eq!(FileSystem::of(dir).journal, is_ext4.then_some(true), "{}", kind.name());
        });
        assert!(names_a_thread("173\n") && !names_a_thread("<none>\n"));
    }

    #[test]
    fn the_features_of_a_balloon_say_whether_it_reports() {
        let balloons = tempfile::tempdir().unwrap();
        assert!(!reports_free_pages(&balloons.path().join("none")), "no such driver");
        std::fs::write(balloons.path().join("unbind"), "").unwrap();
        assert!(!reports_free_pages(balloons.path()), "no device");
        for (device, features, reports) in
            [("virtio0", "0110", false), ("virtio3", "01100100", true)]
        {
            let dir = balloons.path().join(device);
            std::fs::create_dir(&dir).unwrap();
            std::fs::write(dir.join("features"), features).unwrap();
            assert_eq!(reports_free_pages(balloons.path()), reports, "{device} {features}");
        }
    }

    #[test]
    fn an_order_that_no_block_has_turns_reports_off() {
        let eleven = "Node 0, zone      DMA      0      0      0      0      0      0      0      0      1      1      3 \n\
                      Node 0, zone   Normal  15443  48782  28741   5386   2416   1520   1147    603    342    187    317 \n";
        for (least, buddyinfo, reported) in [
            (Some("9"), eleven, true),
            (Some("10"), eleven, true),
            (Some("11"), eleven, false),
            // Before a balloon has asked for reports, the order is -1 as an unsigned number.
            (Some("4294967295"), eleven, false),
            (Some("11"), "Node 0, zone DMA 1 2 3 4 5 6 7 8 9 10 11 12 13 14\n", true),
            (None, eleven, true),
            (Some("11"), "", true),
        ] {
            assert_eq!(some_block_is_reported(least, buddyinfo), reported, "{least:?} {buddyinfo}");
        }
    }

    #[test]
    fn the_proc_file_system_is_found() {
        let found = FileSystem::of(Path::new("/proc/self/io"));
        assert_eq!(found.fs_type.as_deref(), Some("proc"));
        assert!(memory_bytes() > 1 << 20);
    }
}
