//! Sweeps over a product: each file system with each setting, such as options of `cp`, and the points of each of
//! them, such as a system call that fails. A short run tries some points of each.

use std::path::PathBuf;

use anyhow::Context;

use super::copies::{Copies, OptionSet};
use super::counts::{Group, Verdict};
use super::run::Run;

/// How many points of a setting are tried in a row. To find out the points costs a copy or two.
const TURN_POINTS: usize = 4;

/// A sweep of this kind. A case has the text `FILE-SYSTEM; SETTING; POINT`.
pub(crate) trait Grid: Sized {
    type Setting: Setting;
    type Point: Point;

    /// How often a single case is tried until it is wrong.
    const REPEATS: u32 = 1;

    /// What all cases need.
    fn new() -> anyhow::Result<Self>;

    /// Every setting for a file system of this kind.
    fn settings(kind: &str) -> Vec<Self::Setting>;

    /// Every point of a cell.
    fn points(&self, cell: &mut Cell<'_, Self::Setting>) -> anyhow::Result<Vec<Self::Point>>;

    fn attempt(
        &self,
        cell: &mut Cell<'_, Self::Setting>,
        point: &Self::Point,
    ) -> anyhow::Result<Verdict>;

    /// What is tried, for the counts.
    fn subject(setting: Self::Setting, point: &Self::Point) -> String;
}

/// What many cases have in common.
pub(crate) trait Setting: Copy {
    /// The setting's part of the text of a case.
    fn text(&self) -> String;

    /// Options of `cp`, for the counts.
    fn options(&self) -> String {
        self.text()
    }
}

impl Setting for &OptionSet {
    fn text(&self) -> String {
        self.text.to_owned()
    }
}

/// What differs from case to case.
pub(crate) trait Point: Sized {
    /// The point's parts of the text of a case, which has `; ` between them.
    fn parts(&self) -> Vec<String>;

    /// The one with these parts; `None` if there is none.
    fn of(parts: &[&str]) -> Option<Self>;
}

/// A source on one file system, to be copied.
pub(crate) struct Place {
    /// `ext4`, `xfs`, `btrfs` or `tmpfs`.
    pub(crate) kind: &'static str,
    /// A directory on that file system.
    pub(crate) dir: PathBuf,
    pub(crate) copies: Copies,
}

impl Place {
    fn new(run: &Run<'_>, kind: &str) -> anyhow::Result<Place> {
        let place = run.place(kind)?;
        let dir = place.path().to_owned();
        Ok(Place { kind: place.kind, copies: Copies::new(&dir)?, dir })
    }
}

/// Where cases are tried: on one file system with one setting.
pub(crate) struct Cell<'r, S> {
    pub(crate) run: &'r Run<'r>,
    pub(crate) place: &'r mut Place,
    pub(crate) setting: S,
}

/// What is left to try of a cell.
struct Left<G: Grid> {
    /// The index of the place.
    place: usize,
    setting: G::Setting,
    /// The next one last. `None` before the first turn.
    points: Option<Vec<G::Point>>,
}

/// Tries the points of all settings until none are left or the run ends: in order with `--all`, otherwise some of
/// each setting in turn, shuffled.
pub(crate) fn try_cases<G: Grid>(run: &mut Run<'_>) -> anyhow::Result<()> {
    let grid = G::new()?;
    let kinds = run.kinds().into_iter();
    let mut places: Vec<Place> =
        kinds.map(|kind| Place::new(run, kind)).collect::<anyhow::Result<_>>()?;
    let mut cells: Vec<Left<G>> = Vec::new();
    for (place, Place { kind, .. }) in places.iter().enumerate() {
        let settings = G::settings(kind).into_iter();
        cells.extend(settings.map(|setting| Left { place, setting, points: None }));
    }
    run.order(&mut cells);
    let turn = if run.tries_all() { usize::MAX } else { TURN_POINTS };
    let has_more = |cell: &Left<G>| cell.points.as_ref().is_none_or(|points| !points.is_empty());
    while run.goes_on() && cells.iter().any(has_more) {
        for Left { place, setting, points } in &mut cells {
            if !run.goes_on() {
                break;
            }
            let (place, setting) = (&mut places[*place], *setting);
            let points = match points {
                Some(points) => points,
                None => {
                    let mut found = grid.points(&mut Cell { run, place, setting })?;
                    run.order(&mut found);
                    found.reverse();
                    points.insert(found)
                }
            };
            for point in points.split_off(points.len().saturating_sub(turn)).iter().rev() {
                let verdict = grid.attempt(&mut Cell { run, place, setting }, point)?;
                record::<G>(run, place.kind, setting, point, verdict);
                if !run.goes_on() {
                    break;
                }
            }
        }
    }
    Ok(())
}

/// Tries the one case with this text.
pub(crate) fn repeat<G: Grid>(run: &mut Run<'_>, text: &str) -> anyhow::Result<()> {
    let (kind, setting, point) = parse::<G>(text)?;
    let grid = G::new()?;
    let mut place = Place::new(run, kind)?;
    let mut cell = Cell { run, place: &mut place, setting };
    let mut verdict = grid.attempt(&mut cell, &point)?;
    for _ in 1..G::REPEATS {
        if let Verdict::Wrong(_) = verdict {
            break;
        }
        verdict = grid.attempt(&mut cell, &point)?;
    }
    record::<G>(run, kind, setting, &point, verdict);
    Ok(())
}

fn text_of<G: Grid>(kind: &str, setting: G::Setting, point: &G::Point) -> String {
    format!("{kind}; {}; {}", setting.text(), point.parts().join("; "))
}

fn parse<G: Grid>(text: &str) -> anyhow::Result<(&str, G::Setting, G::Point)> {
    let form = || format!("'{text}' is not of the form FILE-SYSTEM; SETTING; POINT");
    let (kind, rest) = text.split_once("; ").with_context(form)?;
    for setting in G::settings(kind) {
        let point = rest.strip_prefix(&setting.text()).and_then(|rest| rest.strip_prefix("; "));
        if let Some(point) = point {
            let parts: Vec<&str> = point.split("; ").collect();
            return Ok((kind, setting, Point::of(&parts).with_context(form)?));
        }
    }
    Err(anyhow::anyhow!("no setting of this sweep begins '{rest}'"))
}

fn record<G: Grid>(
    run: &mut Run<'_>,
    kind: &str,
    setting: G::Setting,
    point: &G::Point,
    verdict: Verdict,
) {
    let group = Group::new(kind, &setting.options(), &G::subject(setting, point));
    run.record(&text_of::<G>(kind, setting, point), group, verdict);
}

/// Checks that the case `text` is read as it is written, and that every setting has a text of its own.
#[cfg(test)]
pub(crate) fn check_texts<G: Grid>(text: &str, wrong: &str) {
    let (kind, setting, point) = parse::<G>(text).expect("a case");
    assert_eq!(text_of::<G>(kind, setting, &point), text);
    assert!(parse::<G>(wrong).is_err(), "{wrong}");
    let mut texts: Vec<String> = G::settings(kind).iter().map(Setting::text).collect();
    let count = texts.len();
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), count);
}
