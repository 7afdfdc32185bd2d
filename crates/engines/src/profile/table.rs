//! The lines of a profile for one pair of file systems, determined once.

use super::{InFlight, Line, Residency, Situation, SizeClass};

/// The choice for each situation between two file systems. The lookup for a file is an index.
#[derive(Clone, Debug, Default)]
pub struct Table {
    cells: [[[Option<usize>; Residency::ALL.len()]; InFlight::ALL.len()]; SizeClass::ALL.len()],
}

impl Table {
    /// The table of `lines`, which are in order of preference. If no line is for a mixed source,
    /// those for an absent source are used: most of the time is spent on the part that is read from
    /// the medium.
    #[must_use]
    pub fn new(lines: &[&Line], no_cache: bool) -> Table {
        let find = |situation: Situation| lines.iter().position(|line| line.fits(&situation));
        let choose = |situation: Situation| {
            let instead = Situation { residency: Residency::Absent, ..situation };
            let partly = situation.residency == Residency::Mixed;
            find(situation).or_else(|| find(instead).filter(|_| partly))
        };
        let cells = SizeClass::ALL.map(|size| {
            InFlight::ALL.map(|in_flight| {
                Residency::ALL
                    .map(|residency| choose(Situation { size, residency, in_flight, no_cache }))
            })
        });
        Table { cells }
    }

    /// The index of the line for a file. A file of unknown residency is assumed to be
    /// resident.
    #[must_use]
    pub fn get(
        &self,
        size: SizeClass,
        in_flight: InFlight,
        residency: Option<Residency>,
    ) -> Option<usize> {
        let [resident, absent, mixed] = self.cells[size.index()][in_flight as usize];
        match residency {
            Some(Residency::Resident) => resident,
            Some(Residency::Absent) => absent,
            Some(Residency::Mixed) => mixed,
            None => resident.or(absent).or(mixed),
        }
    }

    /// Whether the choice for such a file depends on its residency.
    #[must_use]
    pub fn asks(&self, size: SizeClass, in_flight: InFlight) -> bool {
        let [resident, absent, mixed] = self.cells[size.index()][in_flight as usize];
        resident != absent || resident != mixed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: u64 = 1000;
    const LARGE: u64 = 17 << 20;

    fn line(size: Option<u64>, residency: Option<Residency>, no_cache: bool) -> Line {
        Line { size: size.map(SizeClass::of), residency, no_cache, ..Line::default() }
    }

    fn check(lines: &[Line], bytes: u64, expected: [Option<usize>; 4], asks: bool) {
        let table = Table::new(&lines.iter().collect::<Vec<_>>(), false);
        let asked =
            [None, Some(Residency::Resident), Some(Residency::Absent), Some(Residency::Mixed)];
        for in_flight in InFlight::ALL {
            let size = SizeClass::of(bytes);
            let found = asked.map(|residency| table.get(size, in_flight, residency));
            assert_eq!(found, expected, "{lines:?}");
            assert_eq!(table.asks(size, in_flight), asks, "{lines:?}");
        }
    }

    #[test]
    fn the_first_line_that_fits_is_used() {
        use Residency::{Absent, Mixed, Resident};
        let any = || line(None, None, false);
        let of = |residency| line(Some(LARGE), Some(residency), false);
        check(&[], LARGE, [None; 4], false);
        check(&[any()], SMALL, [Some(0); 4], false);
        check(&[any(), any()], LARGE, [Some(0); 4], false);
        check(&[line(None, None, true), any()], LARGE, [Some(1); 4], false);
        let warm_and_cold = [of(Resident), of(Absent)];
        check(&warm_and_cold, LARGE, [Some(0), Some(0), Some(1), Some(1)], true);
        check(&warm_and_cold, SMALL, [None; 4], false);
        let with_mixed = [of(Resident), of(Absent), of(Mixed)];
        check(&with_mixed, LARGE, [Some(0), Some(0), Some(1), Some(2)], true);
        check(&[of(Absent), any()], LARGE, [Some(1), Some(1), Some(0), Some(1)], true);
        check(&[of(Absent)], LARGE, [Some(0), None, Some(0), Some(0)], true);
    }
}
