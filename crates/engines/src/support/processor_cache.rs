//! The caches of the processor, as sysfs describes them.

use std::sync::OnceLock;

/// Where the kernel describes the second-level cache of the first processor
/// (`Documentation/ABI/testing/sysfs-devices-system-cpu`).
const L2_DIR: &str = "/sys/devices/system/cpu/cpu0/cache/index2";

/// Bytes of the second-level cache of one processor. `None` where sysfs is not mounted or does not say: in some
/// virtual machines and containers.
#[must_use]
pub fn l2_bytes() -> Option<u64> {
    static BYTES: OnceLock<Option<u64>> = OnceLock::new();
    let read = |name: &str| std::fs::read_to_string(format!("{L2_DIR}/{name}")).ok();
    *BYTES.get_or_init(|| l2_bytes_of(&read("level")?, &read("size")?))
}

/// The size in bytes, if the cache is of the second level. The kernel writes it in KiB, as in "1024K\n".
fn l2_bytes_of(level: &str, size: &str) -> Option<u64> {
    let kib: u64 = size.trim_end().strip_suffix('K')?.parse().ok()?;
    (level.trim_end() == "2").then(|| kib.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_second_level_cache_counts() {
        assert_eq!(l2_bytes_of("2\n", "1024K\n"), Some(1 << 20));
        assert_eq!(l2_bytes_of("3\n", "32768K\n"), None);
        assert_eq!(l2_bytes_of("2\n", "\n"), None);
        assert_eq!(l2_bytes_of("2\n", "1M\n"), None);
    }
}
