//! What would be better, from what was found.

use lab::words;

use super::findings::Findings;
use crate::kernel::{Call, major_and_minor};
use crate::tune::why_there_is_none;

/// The first release with the flag RWF_DONTCACHE.
const DONTCACHE_SINCE: (u32, u32) = (6, 14);

/// The oldest release that haulage is meant for.
const OLDEST: (u32, u32) = (5, 10);

/// Fewer open files than this make a copy of a tree slower.
const OPEN_FILES_MIN: u64 = 256;

/// Sentences, the most important first.
pub(super) fn on(found: &Findings) -> Vec<String> {
    let parts = [
        on_space(found),
        on_limits(found),
        on_profile(found),
        on_build(found),
        on_calls(found),
        on_reflink(found).into_iter().chain(on_journal(found)).collect(),
    ];
    parts.into_iter().flatten().collect()
}

fn on_space(found: &Findings) -> Vec<String> {
    let dst = &found.dst;
    if dst.read_only {
        return vec![format!("'{}' is mounted read-only: nothing can be copied there.", dst.path)];
    }
    match &dst.not_writable {
        _ if dst.free_bytes == 0 && dst.total_bytes > 0 => {
            vec![format!("'{}' is full: nothing can be copied there.", dst.path)]
        }
        Some(why) => vec![format!("No file can be written in '{}': {why}.", dst.path)],
        None => Vec::new(),
    }
}

fn on_limits(found: &Findings) -> Vec<String> {
    let mut advice = Vec::new();
    if let Some(most) = found.limits.file_bytes {
        let most = words::bytes(most);
        advice.push(format!("A file of more than {most} cannot be written: see 'ulimit -f'."));
    }
    if let Some(most) = found.limits.open_files_max.filter(|most| *most < OPEN_FILES_MIN) {
        advice.push(format!(
            "Only {most} files may be open, which slows down copies of trees: see 'ulimit -Hn'."
        ));
    }
    advice
}

fn on_profile(found: &Findings) -> Vec<String> {
    let profile = &found.profile;
    let quoted = |path: &str| shell_words::quote(path).into_owned();
    let dirs = match found.is_one_place() {
        true => quoted(&found.dst.path),
        false => format!("{} {}", quoted(&found.src.path), quoted(&found.dst.path)),
    };
    let path = profile.path.as_deref().unwrap_or_default();
    let unused =
        |problem: &String| format!("The profile '{path}' is not used as it is: {problem}.");
    let mut advice: Vec<String> = profile.problems.iter().map(unused).collect();
    for change in &profile.stale {
        advice.push(format!(
            "The measurements for these directories are stale: {change}. New ones: haulage tune {dirs}"
        ));
    }
    let can_be_measured = found.dst.not_writable.is_none() && !found.dst.read_only;
    if profile.path.is_none() {
        let why = why_there_is_none();
        advice.push(format!("Copies use nothing that was measured here: {why}."));
    } else if profile.problems.is_empty() && !profile.applies && can_be_measured {
        advice.push(format!(
            "Nothing was measured for these directories. This finds the fastest variants for later \
             copies in three minutes: haulage tune {dirs}"
        ));
    }
    advice
}

fn on_build(found: &Findings) -> Vec<String> {
    let cost = match found.haulage.profile {
        "dist" => return Vec::new(),
        "dev" => "is not optimised, and slow",
        "release" => "takes longer to start: a copy of one small file takes 1.2 times as long",
        _ => "is not the one for installation",
    };
    vec![format!(
        "This build, of the profile {}, {cost}. A faster one: cargo install --path crates/cli --profile \
         dist --locked",
        found.haulage.profile
    )]
}

fn on_calls(found: &Findings) -> Vec<String> {
    let Some(release) = major_and_minor(&found.kernel.release) else { return Vec::new() };
    let shown = |(major, minor): (u32, u32)| format!("{major}.{minor}");
    let mut advice = Vec::new();
    if release < OLDEST {
        advice.push(format!("haulage is meant for Linux {} and later.", shown(OLDEST)));
    }
    for Call { name, reason, since, purpose, .. } in
        found.kernel.calls.iter().filter(|call| !call.found)
    {
        if release < *since {
            let since = shown(*since);
            advice.push(format!("Linux {since} and later have {name}: with it haulage {purpose}."));
        } else if *name != "statx DIO alignment" {
            // The alignment is also missing where the program's file system does not report it.
            advice.push(format!("There is no {name}: {reason}. With it haulage {purpose}."));
        }
    }
    if release < DONTCACHE_SINCE {
        advice.push(format!(
            "Linux {} and later can read and write without filling the page cache (dontcache), which \
             --no-cache uses.",
            shown(DONTCACHE_SINCE)
        ));
    }
    advice
}

fn on_reflink(found: &Findings) -> Option<String> {
    let is_xfs = found.dst.fs_type.as_deref() == Some("xfs");
    let same = found.src.mount_point == found.dst.mount_point;
    let refused = found.engine("reflink").is_some_and(|engine| engine.verdict == "no");
    (is_xfs && same && refused).then(|| {
        "This xfs was made without reflink, so that a copy cannot share extents: 'mkfs.xfs -m reflink=1' \
         makes one that can."
            .to_owned()
    })
}

/// The seconds are those of `recently_deleted` in the kernel's fs/ext4/ialloc.c.
fn on_journal(found: &Findings) -> Option<String> {
    let dst = &found.dst;
    let none = dst.journal == Some(false);
    none.then(|| {
        format!(
            "The ext4 of '{}' has no journal: for up to 360 s after files were removed, the kernel makes \
             others there more slowly, whichever program asks. Compare copies of many files elsewhere, or \
             remove nothing between them.",
            dst.path
        )
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::choices::ProfileFound;
    use super::*;

    /// A machine without fault, of which `change` changes something.
    fn advice_after(change: impl FnOnce(&mut Findings)) -> Vec<String> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut found = Findings::between(here, here).expect("a directory that can be opened");
        found.haulage.profile = "dist";
        found.kernel.release = "6.18.0".to_owned();
        for call in &mut found.kernel.calls {
            (call.found, call.reason) = (true, String::new());
        }
        (found.limits.file_bytes, found.limits.open_files_max) = (None, Some(4096));
        found.profile =
            ProfileFound { path: Some("/p".to_owned()), applies: true, ..<_>::default() };
        for place in [&mut found.src, &mut found.dst] {
            (place.path, place.fs_type) = ("/d".to_owned(), Some("ext4".to_owned()));
            (place.read_only, place.not_writable, place.free_bytes) = (false, None, 1 << 30);
            place.journal = Some(true);
        }
        change(&mut found);
        on(&found)
    }

    fn lose(found: &mut Findings, name: &str, reason: &str) {
        let call = found.kernel.calls.iter_mut().find(|call| call.name == name).expect("found");
        (call.found, call.reason) = (false, reason.to_owned());
    }

    fn make_xfs_without_reflink(found: &mut Findings) {
        found.dst.fs_type = Some("xfs".to_owned());
        let reflink = found.engines.iter_mut().find(|it| it.name == "reflink").expect("found");
        reflink.verdict = "no";
    }

    #[test]
    fn a_machine_without_fault_gets_no_advice() {
        assert_eq!(advice_after(|_| {}), Vec::<String>::new());
    }

    #[test]
    fn each_fault_has_its_advice() {
        type Change = fn(&mut Findings);
        let cases: &[(Change, &str)] = &[
            (|it| it.dst.read_only = true, "'/d' is mounted read-only"),
            (|it| it.dst.free_bytes = 0, "'/d' is full"),
            (|it| it.dst.not_writable = Some("why".to_owned()), "written in '/d': why."),
            (|it| it.limits.file_bytes = Some(1 << 20), "more than 1 MiB cannot be written"),
            (|it| it.limits.open_files_max = Some(100), "Only 100 files may be open"),
            (|it| it.profile.applies = false, "in three minutes: haulage tune /d"),
            (
                |it| it.profile.stale = vec!["x".to_owned()],
                "are stale: x. New ones: haulage tune /d",
            ),
            (|it| it.profile.problems = vec!["y".to_owned()], "'/p' is not used as it is: y."),
            (|it| it.dst.journal = Some(false), "The ext4 of '/d' has no journal"),
            (|it| it.haulage.profile = "dev", "is not optimised"),
            (|it| it.haulage.profile = "release", "1.2 times as long"),
            (|it| lose(it, "io_uring", "why"), "There is no io_uring: why. With it haulage reads"),
            (|it| it.kernel.release = "6.1.0".to_owned(), "Linux 6.14 and later"),
            (make_xfs_without_reflink, "mkfs.xfs -m reflink=1"),
        ];
        for (change, expected) in cases {
            let advice = advice_after(change);
            assert!(advice.len() == 1 && advice[0].contains(expected), "{expected}: {advice:?}");
        }
    }

    #[test]
    fn an_old_kernel_and_its_calls() {
        let advice = advice_after(|it| {
            it.kernel.release = "6.1.0".to_owned();
            lose(it, "cachestat", "why");
        });
        assert!(advice[0].starts_with("Linux 6.5 and later have cachestat: with it haulage asks"));
        let advice = advice_after(|it| it.kernel.release = "5.4.0".to_owned());
        assert_eq!(advice[0], "haulage is meant for Linux 5.10 and later.");
    }
}
