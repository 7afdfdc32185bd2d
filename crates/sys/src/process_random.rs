//! The random bytes that the kernel gives each process.

/// How many they are.
const RANDOM_BYTES: usize = 16;

/// `unsigned long getauxval(unsigned long)`
///
/// The bytes at `AT_RANDOM`, see getauxval(3): random at each execve(2), and the same as long as the
/// program runs. They need no system call, so they are there where getrandom(2) fails. `None` if
/// the kernel gave none.
#[must_use]
pub fn process_random() -> Option<[u8; RANDOM_BYTES]> {
    // SAFETY: the call reads memory that the C library keeps.
    let address = unsafe { libc::getauxval(libc::AT_RANDOM) };
    let address = usize::try_from(address).ok().filter(|&address| address != 0)?;
    let bytes = std::ptr::with_exposed_provenance::<[u8; RANDOM_BYTES]>(address);
    // SAFETY: the kernel has put that many bytes at this address, above the stack of the main
    // thread, where they stay as long as the process lives. Bytes need no alignment.
    Some(unsafe { bytes.read() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_has_some() {
        let bytes = process_random().expect("Linux gives them since 2.6.29");
        assert_ne!(bytes, [0; RANDOM_BYTES]);
        assert_eq!(process_random(), Some(bytes));
    }
}
