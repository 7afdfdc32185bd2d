//! The disk space and memory that an experiment needs, computed before it starts.

use crate::definition::Definition;
use crate::definition::cell::Shape;
use crate::page_cache::state::State;
use crate::workload;

/// The disk space and memory that an experiment needs at the same time, at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpaceNeeded {
    /// Bytes of all sources together, which last as long as the experiment.
    pub src_bytes: u64,
    /// Bytes that the largest cell makes in the destination's directory.
    pub dst_bytes: u64,
    /// Bytes of memory that the largest cell needs to keep its files in the page cache.
    pub memory_bytes: u64,
}

impl SpaceNeeded {
    /// What `definition` needs.
    pub fn of(definition: &Definition) -> SpaceNeeded {
        let mut room = SpaceNeeded::default();
        let mut sources: Vec<(u64, u32, Shape, u32)> = Vec::new();
        for (part, cell) in definition.cells() {
            let Some(workload) = workload::by_name(&cell.workload) else { continue };
            let needs = (workload.needs)(&cell);
            let at_once = u64::from(cell.at_once);
            // Blocks, directories and inodes take space too.
            let slack = 8192 * u64::from(cell.files);
            for nth in 0..cell.at_once {
                let source = (cell.file_bytes, cell.files, cell.shape, nth);
                if needs.src_bytes > 0 && !sources.contains(&source) {
                    sources.push(source);
                    let bytes = needs.src_bytes.saturating_add(slack);
                    room.src_bytes = room.src_bytes.saturating_add(bytes);
                }
            }
            let others = definition.parts[part].variants.len().saturating_sub(1) as u64;
            let kept_bytes = needs.kept_bytes.saturating_mul(others);
            let made_bytes = needs.dst_bytes.saturating_add(kept_bytes);
            if needs.dst_bytes > 0 {
                room.dst_bytes =
                    room.dst_bytes.max(made_bytes.saturating_add(slack).saturating_mul(at_once));
            }
            let mut memory = needs.memory_bytes;
            if cell.state == State::Warm {
                memory = memory.saturating_add(needs.src_bytes).saturating_add(made_bytes);
            }
            room.memory_bytes = room.memory_bytes.max(memory.saturating_mul(at_once));
        }
        room
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::tests::Synthetic;
    use crate::definition::cell::Destination;

    #[test]
    fn each_variant_keeps_the_file_that_it_overwrites() {
        let room = |destination| {
            let mut made = Synthetic::new("copy", &["sendfile", "splice", "mmap"], &["64M"]);
            (made.part().at_once, made.part().destinations) = (vec![2], vec![destination]);
            SpaceNeeded::of(&made.definition)
        };
        let [fresh, overwritten] = [Destination::Fresh, Destination::Overwritten].map(room);
        assert_eq!(fresh.src_bytes >> 20, 128);
        assert_eq!((fresh.dst_bytes >> 20, overwritten.dst_bytes >> 20), (128, 384));
        assert_eq!((fresh.memory_bytes >> 20, overwritten.memory_bytes >> 20), (256, 512));
    }
}
