//! Hash maps and sets whose seed needs no system call.
//!
//! An attacker who makes the source chooses names, and to a degree inode numbers, and must not be able
//! to choose some that all have the same hash. So the seed is secret: the hash is SipHash, as in the
//! standard library, and begins with the random bytes of the process. The standard library takes a
//! seed from getrandom(2) in each thread, and panics if that fails.

use std::hash::{BuildHasher, DefaultHasher, Hasher};
use std::sync::OnceLock;

use sys::process_random;

pub(crate) type HashMap<K, V> = std::collections::HashMap<K, V, Seeded>;
pub(crate) type HashSet<K> = std::collections::HashSet<K, Seeded>;

/// Hashers that have hashed the seed already.
#[derive(Clone, Debug)]
pub(crate) struct Seeded(DefaultHasher);

impl Default for Seeded {
    fn default() -> Seeded {
        static SEEDED: OnceLock<DefaultHasher> = OnceLock::new();
        let seeded = SEEDED.get_or_init(|| {
            let mut hasher = DefaultHasher::new();
            match process_random() {
                Some(bytes) => hasher.write(&bytes),
                // Where this is in memory is the only secret left.
                None => hasher.write_usize((&raw const SEEDED).addr()),
            }
            hasher
        });
        Seeded(seeded.clone())
    }
}

impl BuildHasher for Seeded {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_a_process_is_its_own() {
        let seeded = Seeded::default().hash_one(7_u64);
        assert_eq!(Seeded::default().hash_one(7_u64), seeded);
        let mut known = DefaultHasher::new();
        known.write_u64(7);
        assert_ne!(known.finish(), seeded);
    }
}
