//! The cases: what is copied, and with which options.

use lab::page_cache::state::State;

use super::source_tree::{Builder, KIB, MIB};

/// One row of the table: a source, options, and the state of the page cache.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) job: Job,
    pub(crate) state: State,
    pub(crate) build: fn(&mut Builder, f64) -> anyhow::Result<()>,
    pub(crate) sharing: Sharing,
    /// Processes of one run, one after another. Each makes its own copy.
    pub(crate) processes: usize,
}

/// The job of a copier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// `cp -a`.
    Archive,
    /// `cp -a` of a file with holes.
    ArchiveSparse,
    /// `cp -r`.
    Recursive,
    /// `cp`.
    Plain,
    /// `cp --reflink=never`.
    NoReflink,
    /// `cp --reflink=never` of each file of the source into one directory.
    Operands,
}

impl Job {
    /// The options of GNU cp and haulage.
    pub(crate) fn cp_options(self) -> &'static [&'static str] {
        match self {
            Job::Archive | Job::ArchiveSparse => &["-a"],
            Job::Recursive => &["-r"],
            Job::Plain => &[],
            Job::NoReflink | Job::Operands => &["--reflink=never"],
        }
    }

    /// Whether the copy has to preserve all attributes.
    pub(crate) fn keeps_attributes(self) -> bool {
        matches!(self, Job::Archive | Job::ArchiveSparse)
    }
}

/// Where a case applies, by whether files can share extents there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    Either,
    /// Only where they can.
    Needed,
    /// Only where they cannot: elsewhere no byte would be moved.
    Absent,
}

impl Sharing {
    pub(crate) fn fits(self, place_shares: bool) -> bool {
        match self {
            Sharing::Either => true,
            Sharing::Needed => place_shares,
            Sharing::Absent => !place_shares,
        }
    }
}

pub(crate) const PLAIN_CASE: Case = Case {
    name: "",
    about: "",
    job: Job::Archive,
    state: State::Warm,
    build: tree,
    sharing: Sharing::Either,
    processes: 1,
};

pub(crate) const CASES: &[Case] = &[
    Case { name: "tree", about: "15,000 files in 1,000 directories, 270 MB", ..PLAIN_CASE },
    Case { name: "tree-r", about: "the same, contents only", job: Job::Recursive, ..PLAIN_CASE },
    Case {
        name: "tree-cold",
        about: "the tree, its data not in the page cache, directories and inodes in memory",
        state: State::Cold,
        sharing: Sharing::Absent,
        ..PLAIN_CASE
    },
    Case {
        name: "flat",
        about: "one directory of 30,000 files of 0 to 8 KiB",
        build: flat,
        ..PLAIN_CASE
    },
    Case {
        name: "deep",
        about: "50 chains of 100 directories, 2 files in each",
        build: deep,
        ..PLAIN_CASE
    },
    Case {
        name: "wide",
        about: "3,000 directories of 1 to 10 files under 1 KiB",
        build: wide,
        ..PLAIN_CASE
    },
    Case {
        name: "links",
        about: "12 directories of 1,500 files of 1 KiB, all but the first of hard links",
        build: links,
        ..PLAIN_CASE
    },
    Case {
        name: "symlinks",
        about: "one directory of 20,000 symbolic links, and a file",
        build: symlinks,
        ..PLAIN_CASE
    },
    Case {
        name: "documents",
        about: "3,000 files of 50 to 200 KiB in 30 directories, their bytes moved",
        build: documents,
        sharing: Sharing::Absent,
        ..PLAIN_CASE
    },
    Case {
        name: "photos",
        about: "200 files of 1 to 6 MiB in four directories, their bytes moved",
        build: photos,
        sharing: Sharing::Absent,
        ..PLAIN_CASE
    },
    Case { name: "mixed", about: "200 files of 1 to 16 MiB", build: mixed, ..PLAIN_CASE },
    Case {
        name: "few-large",
        about: "four files of 200 MiB in one directory",
        job: Job::Recursive,
        build: few_large,
        sharing: Sharing::Absent,
        ..PLAIN_CASE
    },
    Case {
        name: "dirs-large",
        about: "eight directories, a file of 100 MiB and three small ones in each",
        job: Job::Recursive,
        build: dirs_large,
        sharing: Sharing::Absent,
        ..PLAIN_CASE
    },
    Case {
        name: "beside",
        about: "one file of 700 MiB beside 20,000 files of 100 bytes to 4 KiB",
        build: beside,
        sharing: Sharing::Absent,
        ..PLAIN_CASE
    },
    Case {
        name: "operands",
        about: "20 operands of 30 MiB",
        job: Job::Operands,
        build: operands,
        ..PLAIN_CASE
    },
    Case {
        name: "large",
        about: "one file of 1 GiB, its bytes moved",
        job: Job::Plain,
        build: large,
        sharing: Sharing::Absent,
        ..PLAIN_CASE
    },
    Case {
        name: "large-never",
        about: "one file of 1 GiB where extents could be shared",
        job: Job::NoReflink,
        build: large,
        sharing: Sharing::Needed,
        ..PLAIN_CASE
    },
    Case {
        name: "large-cold",
        about: "one file of 1 GiB that is not in the page cache",
        job: Job::Plain,
        state: State::Cold,
        build: large,
        sharing: Sharing::Absent,
        ..PLAIN_CASE
    },
    Case {
        name: "large-never-cold",
        about: "the same where extents could be shared",
        job: Job::NoReflink,
        state: State::Cold,
        build: large,
        sharing: Sharing::Needed,
        ..PLAIN_CASE
    },
    Case {
        name: "reflink",
        about: "one file of 1 GiB, extents shared",
        job: Job::Plain,
        build: large,
        sharing: Sharing::Needed,
        ..PLAIN_CASE
    },
    Case {
        name: "sparse",
        about: "one file of 1 GiB, 1 % of it data",
        job: Job::ArchiveSparse,
        build: sparse,
        ..PLAIN_CASE
    },
    Case {
        name: "tiny",
        about: "one file of 1 KiB, 100 processes one after another",
        build: |builder, _| builder.only_file(KIB),
        processes: 100,
        ..PLAIN_CASE
    },
    Case {
        name: "short",
        about: "one file of 256 KiB, its bytes moved, 100 processes one after another",
        job: Job::NoReflink,
        build: |builder, _| builder.only_file(256 * KIB),
        processes: 100,
        ..PLAIN_CASE
    },
    Case {
        name: "middle",
        about: "one file of 4 MiB, its bytes moved, 50 processes one after another",
        job: Job::NoReflink,
        build: |builder, _| builder.only_file(4 * MIB),
        processes: 50,
        ..PLAIN_CASE
    },
];

/// The case called `name`.
pub(crate) fn by_name(name: &str) -> Option<&'static Case> {
    CASES.iter().find(|case| case.name == name)
}

/// `count` scaled, at least 1.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn scaled(count: u64, scale: f64) -> u64 {
    ((count as f64 * scale).round() as u64).max(1)
}

fn tree(builder: &mut Builder, scale: f64) -> anyhow::Result<()> {
    builder.nested_dirs(scaled(1000, scale))?;
    for _ in 0..scaled(15_000, scale) {
        // The mean of this distribution is 18 KB, the median under 4.
        let bytes = builder.log_uniform(100, 128 * KIB);
        builder.file_in_any_dir(bytes)?;
    }
    Ok(())
}

fn flat(builder: &mut Builder, scale: f64) -> anyhow::Result<()> {
    builder.dir("")?;
    (0..scaled(30_000, scale)).try_for_each(|_| {
        let bytes = builder.uniform(0, 8 * KIB);
        builder.file_in_any_dir(bytes)
    })
}

fn deep(builder: &mut Builder, scale: f64) -> anyhow::Result<()> {
    for chain in 0..scaled(50, scale) {
        let mut path = format!("chain-{chain}");
        for _ in 0..100 {
            builder.dir(&path)?;
            for _ in 0..2 {
                let bytes = builder.uniform(0, 4 * KIB);
                builder.file_in_last_dir(bytes)?;
            }
            path.push_str("/down");
        }
    }
    Ok(())
}

fn wide(builder: &mut Builder, scale: f64) -> anyhow::Result<()> {
    for dir in 0..scaled(3000, scale) {
        builder.dir(&format!("dir-{dir}"))?;
        for _ in 0..builder.uniform(1, 10) {
            let bytes = builder.uniform(0, KIB);
            builder.file_in_last_dir(bytes)?;
        }
    }
    Ok(())
}

/// Daily backups with hard links to unchanged files.
fn links(builder: &mut Builder, scale: f64) -> anyhow::Result<()> {
    for number in 0..scaled(150, scale) {
        let path = |day: u64| format!("day-{day}/part-{}/dir-{number}", number / 10);
        builder.dir(&path(0))?;
        for _ in 0..10 {
            builder.file_in_last_dir(KIB)?;
        }
        (1..12).try_for_each(|day| builder.dir_of_hard_links(&path(day), &path(0)))?;
    }
    Ok(())
}

fn symlinks(builder: &mut Builder, scale: f64) -> anyhow::Result<()> {
    builder.dir("")?;
    // The state of the page cache is proved by a file's pages.
    builder.file_in_last_dir(KIB)?;
    (0..scaled(20_000, scale)).try_for_each(|number| builder.symlink_in_last_dir(number))
}

fn documents(builder: &mut Builder, scale: f64) -> anyhow::Result<()> {
    builder.nested_dirs(30)?;
    (0..scaled(3000, scale)).try_for_each(|_| {
        let bytes = builder.uniform(50 * KIB, 200 * KIB);
        builder.file_in_any_dir(bytes)
    })
}

fn photos(builder: &mut Builder, scale: f64) -> anyhow::Result<()> {
    builder.nested_dirs(4)?;
    (0..scaled(200, scale)).try_for_each(|_| {
        let bytes = builder.uniform(MIB, 6 * MIB);
        builder.file_in_any_dir(bytes)
    })
}

fn mixed(builder: &mut Builder, scale: f64) -> anyhow::Result<()> {
    builder.dir("")?;
    (0..scaled(200, scale)).try_for_each(|_| {
        let bytes = builder.log_uniform(MIB, 16 * MIB);
        builder.file_in_any_dir(bytes)
    })
}

fn few_large(builder: &mut Builder, scale: f64) -> anyhow::Result<()> {
    builder.dir("")?;
    (0..4).try_for_each(|_| builder.file_in_last_dir(scaled(200 * MIB, scale)))
}

fn dirs_large(builder: &mut Builder, scale: f64) -> anyhow::Result<()> {
    for number in 0..8 {
        builder.dir(&format!("dir-{number}"))?;
        builder.file_in_last_dir(scaled(100 * MIB, scale))?;
        (0..3).try_for_each(|_| builder.file_in_last_dir(KIB))?;
    }
    Ok(())
}

fn beside(builder: &mut Builder, scale: f64) -> anyhow::Result<()> {
    for number in 0..200 {
        builder.dir(&format!("dir-{number}"))?;
        for _ in 0..scaled(100, scale) {
            let bytes = builder.uniform(100, 4 * KIB);
            builder.file_in_last_dir(bytes)?;
        }
        if number == 100 {
            builder.file_in_last_dir(scaled(700 * MIB, scale))?;
        }
    }
    Ok(())
}

fn operands(builder: &mut Builder, scale: f64) -> anyhow::Result<()> {
    builder.dir("")?;
    (0..scaled(20, scale)).try_for_each(|_| builder.plain_file_in_last_dir(30 * MIB))
}

fn large(builder: &mut Builder, scale: f64) -> anyhow::Result<()> {
    builder.only_file(scaled(1024 * MIB, scale))
}

fn sparse(builder: &mut Builder, scale: f64) -> anyhow::Result<()> {
    // One part in a hundred: 64 KiB in every 6400.
    builder.only_sparse_file(scaled(1024 * MIB, scale), 64 << 10, 6400 << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for case in CASES {
            let same = CASES.iter().filter(|other| other.name == case.name);
            assert_eq!(same.count(), 1, "{}", case.name);
            assert_eq!(by_name(case.name).map(|found| found.about), Some(case.about));
            assert!(!case.about.is_empty() && case.processes > 0, "{}", case.name);
        }
        assert!(by_name("treee").is_none());
    }

    #[test]
    fn one_of_each_pair_fits_every_place() {
        for (moving, sharing) in [("large", "large-never"), ("large-cold", "large-never-cold")] {
            for place_shares in [false, true] {
                let fits = |name| by_name(name).expect(name).sharing.fits(place_shares);
                assert_ne!(fits(moving), fits(sharing), "{moving}");
            }
        }
    }

    #[test]
    fn nothing_scales_to_none() {
        assert_eq!(scaled(200, 0.001), 1);
        assert_eq!(scaled(200, 1.5), 300);
    }
}
