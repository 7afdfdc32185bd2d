//! Gates: what else the machine did during a round.
//!
//! This module only judges a round. `carry_out` in `session/mod.rs` runs a disturbed round again,
//! as often as its order allows (`REPEATS` in `conduct/next_session.rs`); a round that is disturbed
//! every time counts nevertheless.
//!
//! A round is judged as a whole, by counters that no variant moves: processor time that the host
//! took, other programs, memory pressure, reads of other programs. So no variant is more likely
//! than another to have its samples rejected.

use sys::{Whose, usage};

use crate::clock::device_bytes::{DeviceBytes, device_bytes};
use crate::clock::now_ns;
use crate::sample::record::RoundRecord;

/// A round is disturbed if the host took more than this share of its processor time, or other
/// programs more than that one.
const STEAL_SHARE: f64 = 0.05;
const FOREIGN_SHARE: f64 = 0.15;

/// A round is disturbed if some task waited for memory for more than this share of it.
const MEMORY_SHARE: f64 = 0.05;

/// Other programs may read this many bytes from disks during a round, or a tenth of what the round
/// itself reads if that is more.
const FOREIGN_READ_BYTES: u64 = 16 << 20;

/// The step of the counters in /proc/stat. A difference of two steps may be chance.
const TICK_NS: u64 = 10_000_000;

/// Counters at the start of a round.
#[derive(Clone, Debug)]
pub struct Gates {
    at_ns: u64,
    /// Running processes of the lab. The kernel adds the times of a child to those of its parent
    /// only when the child has ended.
    helpers: Vec<u32>,
    now: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    steal_ns: u64,
    user_ns: u64,
    own_user_ns: u64,
    memory_pressure_ns: Option<u64>,
    io_pressure_ns: Option<u64>,
    disk_read_bytes: u64,
    own_read_bytes: u64,
}

impl Gates {
    /// Reads the counters. `helpers` are processes of ours that will not end during the round.
    pub fn open(helpers: Vec<u32>) -> Gates {
        let now = Counts::read(&helpers);
        Gates { at_ns: now_ns(), helpers, now }
    }

    /// What happened since [`Gates::open`].
    #[must_use]
    pub fn close(self) -> RoundRecord {
        let (before, after) = (self.now, Counts::read(&self.helpers));
        let since = |field: fn(&Counts) -> u64| field(&after).saturating_sub(field(&before));
        let pressure = |field: fn(&Counts) -> Option<u64>| {
            Some(field(&after)?.saturating_sub(field(&before)?))
        };
        let mut found = RoundRecord {
            round_ns: now_ns() - self.at_ns,
            steal_ns: since(|counts| counts.steal_ns),
            foreign_user_ns: since(|c| c.user_ns).saturating_sub(since(|c| c.own_user_ns)),
            memory_pressure_ns: pressure(|counts| counts.memory_pressure_ns),
            io_pressure_ns: pressure(|counts| counts.io_pressure_ns),
            foreign_read_bytes: since(|c| c.disk_read_bytes)
                .saturating_sub(since(|c| c.own_read_bytes)),
            ..RoundRecord::default()
        };
        let cpus = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        found.breach = found.breaches(cpus, since(|c| c.own_read_bytes)).join("; ");
        found
    }
}

impl RoundRecord {
    fn breaches(&self, cpus: f64, own_read_bytes: u64) -> Vec<String> {
        let mut found = Vec::new();
        let round = self.round_ns as f64;
        let beyond = |spent_ns: u64, share: f64| {
            spent_ns > 2 * TICK_NS && spent_ns as f64 > share * round * cpus
        };
        let ms = |ns: u64| ns / 1_000_000;
        if beyond(self.steal_ns, STEAL_SHARE) {
            found.push(format!("the host took {} ms of processor time", ms(self.steal_ns)));
        }
        if beyond(self.foreign_user_ns, FOREIGN_SHARE) {
            found.push(format!("other programs ran for {} ms", ms(self.foreign_user_ns)));
        }
        let pressure_ns = self.memory_pressure_ns.unwrap_or(0);
        if pressure_ns as f64 > MEMORY_SHARE * round {
            found.push(format!("tasks waited {} ms for memory", ms(pressure_ns)));
        }
        if self.foreign_read_bytes > FOREIGN_READ_BYTES.max(own_read_bytes / 10) {
            let bytes = crate::words::bytes(self.foreign_read_bytes);
            found.push(format!("others read {bytes} from disks"));
        }
        found
    }
}

impl Counts {
    fn read(helpers: &[u32]) -> Counts {
        let (user_ns, steal_ns) = processor_times().unwrap_or_default();
        let own = |whose| usage(whose).map_or(0, |usage| usage.user_ns);
        let helping: Vec<(u64, u64)> = helpers.iter().map(|&pid| used_by(pid)).collect();
        Counts {
            steal_ns,
            user_ns,
            own_user_ns: own(Whose::Process)
                + own(Whose::Children)
                + helping.iter().map(|(user_ns, _)| user_ns).sum::<u64>(),
            memory_pressure_ns: pressure_ns("/proc/pressure/memory"),
            io_pressure_ns: pressure_ns("/proc/pressure/io"),
            disk_read_bytes: disk_read_bytes().unwrap_or(0),
            own_read_bytes: device_bytes().map_or(0, |device| device.read)
                + helping.iter().map(|(_, read_bytes)| read_bytes).sum::<u64>(),
        }
    }
}

/// User time, nice included, and steal time of all processors: proc_stat(5), first line.
fn processor_times() -> Option<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let fields: Vec<u64> =
        text.lines().next()?.split_ascii_whitespace().skip(1).flat_map(str::parse).collect();
    let tick_ns = tick_ns();
    Some(((fields.first()? + fields.get(1)?) * tick_ns, fields.get(7)? * tick_ns))
}

fn tick_ns() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)
}

/// User time of a process with the children that it has waited for, and bytes that it had devices
/// read: `proc_pid_stat(5)` and `proc_pid_io(5)`. Zero for a process that is gone: its parent has
/// its times then.
fn used_by(pid: u32) -> (u64, u64) {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).ok();
    // The name of the program, in parentheses, may hold anything.
    let user_ns = read("stat").and_then(|stat| {
        let (_, fields) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        let ticks = |index: usize| fields.get(index)?.parse::<u64>().ok();
        // The 14th and the 16th of all; the state, the third, is the first here.
        Some((ticks(11)? + ticks(13)?) * tick_ns())
    });
    let device = read("io").and_then(|io| DeviceBytes::of(&io));
    (user_ns.unwrap_or(0), device.map_or(0, |device| device.read))
}

/// The time in total during which some task waited: Documentation/accounting/psi.rst.
fn pressure_ns(file: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let some = text.lines().find(|line| line.starts_with("some "))?;
    Some(some.rsplit_once("total=")?.1.parse::<u64>().ok()? * 1000)
}

/// Bytes that disks have read, all of them: the kernel's Documentation/admin-guide/iostats.rst.
/// What lies on other devices (loop, device mapper, memory) would count twice or is no disk.
fn disk_read_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/diskstats").ok()?;
    let mut sectors = 0;
    for line in text.lines() {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let (Some(name), Some(read)) = (fields.get(2), fields.get(5)) else { continue };
        let layered = ["loop", "ram", "dm-", "md", "zram"];
        let whole_disk = std::path::Path::new("/sys/block").join(name).exists();
        if whole_disk && !layered.iter().any(|layer| name.starts_with(layer)) {
            sectors += read.parse::<u64>().unwrap_or(0);
        }
    }
    Some(sectors * 512)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_disturbs_a_round_is_named() {
        let quiet = RoundRecord { round_ns: 1_000_000_000, ..RoundRecord::default() };
        assert!(quiet.breaches(2.0, 0).is_empty());
        let check = |gate: RoundRecord, expected: &str| {
            let found = gate.breaches(2.0, 0).join("; ");
            assert!(found.contains(expected), "{found:?} for {expected:?}");
        };
        check(RoundRecord { steal_ns: 150_000_000, ..quiet.clone() }, "host took 150 ms");
        check(RoundRecord { foreign_user_ns: 400_000_000, ..quiet.clone() }, "other programs ran");
        check(RoundRecord { memory_pressure_ns: Some(90_000_000), ..quiet.clone() }, "for memory");
        check(RoundRecord { foreign_read_bytes: 64 << 20, ..quiet.clone() }, "others read 64 MiB");
        // Two steps of a counter in a short round say nothing.
        let short =
            RoundRecord { round_ns: 5_000_000, steal_ns: 20_000_000, ..RoundRecord::default() };
        assert!(short.breaches(2.0, 0).is_empty());
    }

    #[test]
    fn the_work_of_helpers_is_not_foreign() {
        let mut busy = std::process::Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .expect("started");
        let (with, without) = (Gates::open(vec![busy.id()]), Gates::open(Vec::new()));
        std::thread::sleep(std::time::Duration::from_millis(400));
        let (own_ns, _) = used_by(busy.id());
        let (with, without) = (with.close(), without.close());
        busy.kill().and_then(|()| busy.wait()).expect("it ends");
        if own_ns < 100_000_000 {
            // On a machine this busy there is nothing to tell apart.
            return testfs::skip(&testfs::test_name(), "no processor was to be had");
        }
        let told_apart_ns = without.foreign_user_ns.saturating_sub(with.foreign_user_ns);
        assert!(told_apart_ns >= own_ns / 2, "{own_ns} {with:?} {without:?}");
        assert!(with.round_ns >= 400_000_000, "{with:?}");
        assert_eq!(used_by(u32::MAX), (0, 0));
    }
}
