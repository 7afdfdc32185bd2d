//! The address space that the process may still use.

use engines::sys::resource_limit;
use rustix::param::page_size;
use rustix::process::Resource;

/// Bytes that are left below RLIMIT_AS; `None` without a limit. What is not known is not left.
pub(crate) fn left_bytes() -> Option<u64> {
    let limit = resource_limit(Resource::As).ok()?.current?;
    let used = std::fs::read_to_string("/proc/self/statm").ok().and_then(|text| used_pages(&text));
    let page_bytes = page_size() as u64;
    Some(used.map_or(0, |pages| limit.saturating_sub(pages.saturating_mul(page_bytes))))
}

/// The first number of proc_pid_statm(5).
fn used_pages(statm: &str) -> Option<u64> {
    statm.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_of_a_process_are_counted() {
        assert_eq!(used_pages("4241 1028 911 52 0 325 0\n"), Some(4241));
        assert_eq!(used_pages(""), None);
    }
}
