//! The planted faults, and what must notice each.

/// A fault.
pub(super) struct Mutant {
    pub(super) name: &'static str,
    /// What is wrong with the copier then, in a sentence.
    pub(super) wrong: &'static str,
    /// From the root of the repository.
    pub(super) file: &'static str,
    /// What stands in the file exactly once.
    pub(super) old: &'static str,
    /// The text that replaces `old`.
    pub(super) new: &'static str,
    /// The test that must fail then, as arguments of `cargo test`, separated by blanks.
    pub(super) noticed_by: &'static str,
}

const CONFORMANCE: &str = "-p haulage-engines --test conformance";
const ENGINES: &str = "-p haulage-engines --lib";
const TREE: &str = "-p haulage-tree --lib";
const HAZARDS: &str = "-p haulage-tree --test hazards";
const ATOMIC: &str = "-p haulage-cli --test cp cp_atomic::";
const DURABLE: &str = "-p haulage-cli --test cp cp_durable::";
const IDENTITY: &str = "-p haulage-cli --test cp cp_identity::";
const LIES: &str = "-p haulage-cli --test cp cp_lies::";
const RESUME: &str = "-p haulage-cli --test cp cp_resume::";
const STALE: &str = "-p haulage-cli --test cp cp_resume_stale::";
const SERVED: &str = "-p haulage-cli --test cp cp_served::";
const VERIFY: &str = "-p haulage-cli --test cp cp_verify::";

/// All of them.
pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "lost-byte",
        wrong: "The last byte of a span is not copied.",
        file: "crates/engines/src/support/until_done.rs",
        old: "    while bytes < span.len {\n        let left = span.after(bytes);",
        new: "    while bytes + 1 < span.len {\n        let left = span.after(bytes);",
        noticed_by: CONFORMANCE,
    },
    Mutant {
        name: "short-write",
        wrong: "A short count of a write is taken for all bytes.",
        file: "crates/engines/src/support/until_done.rs",
        old: "            Ok(count) => written += count,",
        new: "            Ok(_) => written = bytes.len(),",
        noticed_by: ENGINES,
    },
    Mutant {
        name: "short-splice",
        wrong: "A short count of a splice out of the pipe is taken for all bytes.",
        file: "crates/engines/src/engine/splice.rs",
        old: "                Ok(count) => drained += count,",
        new: "                Ok(_) => drained = taken,",
        noticed_by: CONFORMANCE,
    },
    Mutant {
        name: "zero-is-end",
        wrong: "A zero of a copy call is taken for the end of the file.",
        file: "crates/engines/src/support/until_done.rs",
        old: "                let doubted = doubt_zero(pair, span.after(bytes));",
        new: "                let doubted = Moved { bytes: 0, stop: Stop::Eof };",
        noticed_by: ENGINES,
    },
    Mutant {
        name: "swallowed-read-error",
        wrong: "A read that fails is taken for the end of the file.",
        file: "crates/engines/src/support/until_done.rs",
        old: "        Err(errno) => Step::halted(Halt::Error { side: Side::Src, errno }),\n    }\n}\n\n/// `pread`",
        new: "        Err(_) => Step::halted(Halt::Eof),\n    }\n}\n\n/// `pread`",
        noticed_by: HAZARDS,
    },
    Mutant {
        name: "swallowed-write-error",
        wrong: "A failed write ends the copy of a file without a message.",
        file: "crates/tree/src/data/transfer.rs",
        old: "            Stop::Failed { side, errno } => (side, errno),",
        new: "            Stop::Failed { side: Side::Dst, .. } => return Ok(Ended::Yes),\n            \
              Stop::Failed { side, errno } => (side, errno),",
        noticed_by: LIES,
    },
    Mutant {
        name: "swallowed-close-error",
        wrong: "An error of close(2) is not reported.",
        file: "crates/tree/src/data/worker.rs",
        old: "            return closed.map_err(failed(Action::Close, place));",
        new: "            return closed.map_err(failed(Action::Close, place)).or(Ok(()));",
        noticed_by: LIES,
    },
    Mutant {
        name: "lost-end-hole",
        wrong: "A hole at the end of a file is not made.",
        file: "crates/tree/src/data/transfer.rs",
        old: "        retry_on_intr(|| ftruncate(self.files.dst.fd, self.position.at))\n            .map_err(failed(Action::Extend, self.files.dst.place))",
        new: "        let _ = retry_on_intr(|| ftruncate(self.files.dst.fd, self.position.at - 1));\n        Ok(())",
        noticed_by: HAZARDS,
    },
    Mutant {
        name: "hole-on-fuse",
        wrong: "The holes that a FUSE file system reports are believed.",
        file: "crates/tree/src/data/data_copy.rs",
        old: "        let reliable = ends.src.fs_type.is_some_and(is_reliable);",
        new: "        let reliable = ends.src.fs_type.is_some();",
        noticed_by: LIES,
    },
    Mutant {
        name: "missing-fsync",
        wrong: "With --atomic a file gets its name before its data is written.",
        file: "crates/tree/src/destination/atomic.rs",
        old: "        write_before_name(fd.as_fd(), fs_type).map_err",
        new: "        io::Result::Ok(drop((write_before_name, fs_type))).map_err",
        noticed_by: DURABLE,
    },
    Mutant {
        name: "unsynced-name",
        wrong: "With --atomic --durable a file is not synced after it has got its name.",
        file: "crates/tree/src/copy/regular.rs",
        old: "    worker.data.close(cx.data, (dst.fd, &entry.dst), times_of)?;",
        new: "    if !cx.options.atomic {\n        worker.data.close(cx.data, (dst.fd, &entry.dst), times_of)?;\n    }",
        noticed_by: DURABLE,
    },
    Mutant {
        name: "missing-syncfs",
        wrong: "--durable leaves out syncfs(2) for many files.",
        file: "crates/tree/src/data/sync.rs",
        old: "        retry_on_intr(|| syncfs(fd)).map(|()| true)",
        new: "        io::Result::Ok(true)",
        noticed_by: DURABLE,
    },
    Mutant {
        name: "missing-directory-sync",
        wrong: "--durable leaves out the sync of directories.",
        file: "crates/tree/src/data/sync.rs",
        old: "    let synced = match retry_on_intr(|| fsync(dir)) {",
        new: "    let synced = match io::Result::Ok(()) {",
        noticed_by: DURABLE,
    },
    Mutant {
        name: "chmod-before-chown",
        wrong: "The mode is set before the owner, whose change clears set-user-ID.",
        file: "crates/tree/src/metadata/apply.rs",
        old: "    let owner = match preserve.ownership {
        true => copy_owner(&mut losses, source.stat),
        false => Owner::Unchanged,
    };
    let mode = copy_xattrs(&mut losses, source);
    set_mode(&mut losses, source.stat, owner, mode);",
        new: "    set_mode(&mut losses, source.stat, Owner::Unchanged, None);
    if preserve.ownership {
        copy_owner(&mut losses, source.stat);
    }
    copy_xattrs(&mut losses, source);",
        noticed_by: HAZARDS,
    },
    Mutant {
        name: "lost-times",
        wrong: "The times of a new file are not set.",
        file: "crates/tree/src/metadata/apply.rs",
        old: "    if preserve.timestamps\n        && let Err(errno) = set_times(target.handle, source.stat)",
        new: "    if preserve.timestamps\n        && target.stat.st_size > 0\n        && let Err(errno) = set_times(target.handle, source.stat)",
        noticed_by: HAZARDS,
    },
    Mutant {
        name: "temporary-left",
        wrong: "A temporary name of --atomic stays after a failed copy.",
        file: "crates/tree/src/destination/atomic.rs",
        old: "            self.report_left_over(remove_own(self.final_name().0, temp_name));",
        new: "            let _ = (temp_name, remove_own);",
        noticed_by: SERVED,
    },
    Mutant {
        name: "replaced-unseen",
        wrong: "--atomic replaces a file that appeared after it had looked.",
        file: "crates/tree/src/destination/atomic.rs",
        old: "                    && !is_renumbered(fd, &replaced, &now) =>",
        new: "                    && !is_renumbered(fd, &replaced, &now) && now.st_nlink > 1000 =>",
        noticed_by: ATOMIC,
    },
    Mutant {
        name: "exchanged-copy-linked",
        wrong: "A file that has taken the name of a first copy is linked in its place.",
        file: "crates/tree/src/shared/hard_links.rs",
        old: "    if linked.as_ref().is_ok_and(|linked| Ok(FileId::of(linked)) == id) {",
        new: "    if linked.as_ref().is_ok_and(|linked| Ok(FileId::of(linked)) == id || linked.st_nlink > 0) {",
        noticed_by: TREE,
    },
    Mutant {
        name: "spelling-is-another-name",
        wrong: "A source is removed by another spelling of its name.",
        file: "crates/tree/src/destination/found.rs",
        old: "(is_exact || may_be_one()) && are_one_name",
        new: "is_exact && are_one_name",
        noticed_by: IDENTITY,
    },
    Mutant {
        name: "rename-before-copy",
        wrong: "--atomic writes into the old file.",
        file: "crates/tree/src/destination/atomic.rs",
        old: "    cx.options.atomic\n        && cx.options.make == Make::Copy",
        new: "    cx.options.atomic\n        && state.found.is_none()\n        && cx.options.make == Make::Copy",
        noticed_by: ATOMIC,
    },
    Mutant {
        name: "journal-without-hash",
        wrong: "--resume believes a chunk whose bytes do not have its hash.",
        file: "crates/tree/src/data/journal.rs",
        old: "        Ok((hash_of(partial, self.at..end, &holes)?.to_le_bytes() == hash).then_some(end))",
        new: "        Ok((hash_of(partial, self.at..end, &holes)?.to_le_bytes() == hash || true).then_some(end))",
        noticed_by: TREE,
    },
    Mutant {
        name: "journal-left",
        wrong: "The journal stays after --resume has completed a file.",
        file: "crates/tree/src/destination/atomic.rs",
        old: "            let own = partial::clear_journal(self.final_name());",
        new: "            let own = Ok(drop((partial::clear_journal, self.final_name())));",
        noticed_by: RESUME,
    },
    Mutant {
        name: "stale-left",
        wrong: "A partial file that an earlier run left stays when its name is another entry now.",
        file: "crates/tree/src/destination/partial.rs",
        old: "    let removed = [beside.remove_stale(), remove_partial(beside)];",
        new: "    let removed = [beside.remove_stale(), Ok(drop(remove_partial))];",
        noticed_by: STALE,
    },
    Mutant {
        name: "backup-not-made",
        wrong: "With --backup a file is overwritten without a backup.",
        file: "crates/tree/src/destination/decide.rs",
        old: "    if let Some(backup) = &cx.options.backup {",
        new: "    if let Some(backup) = cx.options.backup.as_ref().filter(|_| is_directory(&entry.src_stat)) {",
        noticed_by: SERVED,
    },
    Mutant {
        name: "source-link-followed",
        wrong: "O_NOFOLLOW is left out where a file is opened that was listed as regular.",
        file: "crates/tree/src/entry/mod.rs",
        old: "        open_regular(fs_types, &self.src, false)",
        new: "        open_regular(fs_types, &self.src, true)",
        noticed_by: HAZARDS,
    },
    Mutant {
        name: "untrusted-link-followed",
        wrong: "A link in the destination that another user made is followed.",
        file: "crates/tree/src/security/symlink.rs",
        old: "            if !trusted {",
        new: "            if !trusted && links > LINKS_MAX {",
        noticed_by: HAZARDS,
    },
    Mutant {
        name: "verified-from-cache",
        wrong: "--verify compares the page cache with itself and says that it read the medium.",
        file: "crates/tree/src/data/verify.rs",
        old: "    retry_on_intr(|| fdatasync(fd))?;\n    if fstat(fd)?.st_size == 0 {",
        new: "    if fstat(fd)?.st_size > 0 {\n        return Ok(true);\n    }\n    \
              retry_on_intr(|| fdatasync(fd))?;\n    if fstat(fd)?.st_size == 0 {",
        noticed_by: VERIFY,
    },
    Mutant {
        name: "change-unseen",
        wrong: "A source that another process writes to during the copy is not reported.",
        file: "crates/tree/src/data/copy.rs",
        old: "        if self.report.changed {\n            self.cx.report.report(Diagnostic::Changed",
        new: "        if self.report.changed && size == 0 {\n            self.cx.report.report(Diagnostic::Changed",
        noticed_by: HAZARDS,
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_fault_can_be_planted() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut names = BTreeSet::new();
        for Mutant { name, file, old, new, .. } in MUTANTS {
            assert!(names.insert(name), "{name} stands twice");
            assert_ne!(old, new, "{name}");
            let text = std::fs::read_to_string(root.join(file)).expect(file);
            assert_eq!(text.matches(old).count(), 1, "{name}: how often its old text is in {file}");
        }
    }
}
