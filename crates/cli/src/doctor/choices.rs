//! Which variants a copy between two directories uses, and the profile that decides it.

use std::os::fd::AsFd;
use std::path::Path;

use engines::profile::{
    FileSystems, InFlight, Location, Machine, PairChoices, Profile, Residency, Situation, SizeClass,
};
use haulage::prediction::{PlannedFile, Predictor};
use report::columns::visible;
use serde::Serialize;

use crate::kernel;
use crate::sample_files::{EngineFound, open_dir};

/// What is expected of files of some lengths, if one is copied at a time and its bytes are moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Choice {
    /// The files are longer than this; `None` for the shortest.
    pub(super) over_bytes: Option<u64>,
    /// The files are not longer than this; `None` for the longest.
    pub(super) up_to_bytes: Option<u64>,
    /// The variant for a source in the page cache.
    pub(super) cached: String,
    /// The variant for a source that is not.
    pub(super) not_cached: String,
}

/// The profile as far as it concerns the two directories.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct ProfileFound {
    /// The file of the profile; `None` if the environment names none.
    pub(super) path: Option<String>,
    /// Why it cannot be used, or which of its lines.
    pub(super) problems: Vec<String>,
    /// Whether it has choices for these directories.
    pub(super) applies: bool,
    /// When they were measured.
    pub(super) measured: Option<String>,
    /// What has changed since.
    pub(super) stale: Vec<String>,
}

/// The two file systems of a copy in words, as `ext4 /data to xfs /backup`, or `within ext4 /data`; and
/// what it will use, without the variants that do not work, by `engines`.
pub(super) fn between(
    src: &Path,
    dst: &Path,
    engines: &[EngineFound],
) -> anyhow::Result<(String, Vec<Choice>, ProfileFound)> {
    let (src, dst) = (open_dir(src)?, open_dir(dst)?);
    let found = FileSystems::of(src.as_fd(), dst.as_fd());
    let (profile, own) = profile_between(&found);
    let choices = choices(&Predictor::between(&found, &own), engines);
    Ok((visible(&found.in_words()), choices, profile))
}

/// The longest length that is tried of the class without a longest one.
const LONGEST: u64 = 1 << 30;

/// The choices for all lengths; lengths with the same choices are one.
fn choices(predictor: &Predictor, engines: &[EngineFound]) -> Vec<Choice> {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let mut choices: Vec<Choice> = Vec::new();
    for size in SizeClass::ALL {
        let variant = |bytes, residency| {
            let situation =
                Situation { size, residency, in_flight: InFlight::One, no_cache: false };
            let planned = PlannedFile { situation, bytes, jobs };
            let variants = predictor.variants(&planned);
            let works = |name: &str| {
                engines.iter().all(|engine| engine.name != name || engine.verdict != "no")
            };
            let first = variants.iter().find(|variant| works(variant.engine.name));
            first.or(variants.last()).map(ToString::to_string).unwrap_or_default()
        };
        let both = |bytes| [Residency::Resident, Residency::Absent].map(|it| variant(bytes, it));
        let shortest = size.over_bytes().map_or(1, |bytes| bytes + 1);
        let longest = size.last_bytes().unwrap_or(LONGEST);
        let (short, long) = (both(shortest), both(longest));
        let mut over_bytes = size.over_bytes();
        if short != long {
            let last = last_like(shortest, longest, |bytes| both(bytes) == short);
            add(&mut choices, over_bytes, Some(last), short);
            over_bytes = Some(last);
        }
        add(&mut choices, over_bytes, size.last_bytes(), long);
    }
    choices
}

/// Adds the choice for lengths, which are longer than those before.
fn add(
    choices: &mut Vec<Choice>,
    over_bytes: Option<u64>,
    up_to_bytes: Option<u64>,
    [cached, not_cached]: [String; 2],
) {
    match choices.last_mut() {
        Some(last) if (&last.cached, &last.not_cached) == (&cached, &not_cached) => {
            last.up_to_bytes = up_to_bytes;
        }
        _ => choices.push(Choice { over_bytes, up_to_bytes, cached, not_cached }),
    }
}

/// The longest length from `first` on, which is like the first, where those up to `other`, which is not, change once.
fn last_like(first: u64, other: u64, is_like: impl Fn(u64) -> bool) -> u64 {
    let (mut like, mut unlike) = (first, other);
    while unlike - like > 1 {
        let middle = like + (unlike - like) / 2;
        *(if is_like(middle) { &mut like } else { &mut unlike }) = middle;
    }
    like
}

/// The profile of this process, and its pairs for these file systems on this machine.
fn profile_between(found: &FileSystems) -> (ProfileFound, Vec<PairChoices>) {
    let location = Location::of_process();
    let Some(path) = location.path() else { return Default::default() };
    let mut profile =
        ProfileFound { path: Some(visible(&path.display().to_string())), ..<_>::default() };
    let parsed = match Profile::read(path) {
        Ok(Some(parsed)) => parsed,
        Ok(None) => {
            if let Location::Named(_) = location {
                profile.problems.push("it does not exist".to_owned());
            }
            return (profile, Vec::new());
        }
        Err(problem) => {
            profile.problems.push(visible(&problem.to_string()));
            return (profile, Vec::new());
        }
    };
    profile.problems = parsed.unusable.iter().map(|it| visible(&it.to_string())).collect();
    let this = Machine::this();
    let own: Vec<PairChoices> =
        parsed.profile.pairs_of(&this).filter(|pair| pair.fits(found)).cloned().collect();
    if let Some(first) = own.first() {
        profile.applies = true;
        let date = first.lines.iter().find_map(|line| line.choice.measured.date.clone());
        profile.measured = date.map(|date| visible(&date));
        let changes = first.changes(found, &kernel::release());
        profile.stale = changes.iter().map(|change| visible(change)).collect();
    }
    (profile, own)
}

#[cfg(test)]
mod tests {
    use super::last_like;

    #[test]
    fn the_length_at_which_the_choice_changes_is_found() {
        for last in [1, 2, 9, 64 << 20, (256 << 20) - 2] {
            assert_eq!(last_like(1, (256 << 20) - 1, |bytes| bytes <= last), last);
        }
    }
}
