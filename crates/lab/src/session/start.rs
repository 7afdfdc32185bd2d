//! Starts the variants of an order, in the session process or in a worker process.

use super::protocol::Order;
use crate::definition::without_label;
use crate::error::Error;
use crate::scratch::WorkDir;
use crate::trial::NotRun;
use crate::workload;
use crate::workload::interface::{ReadyVariant, Setting};
use crate::workload::scratch_dirs::ScratchDirs;

/// A variant that is ready to run; or why it does not work here, in words.
pub(crate) type Started = Result<Box<dyn ReadyVariant>, String>;

/// The variants of an order, started for run `nth` of those at once. One that is in no round is refused without a
/// reason.
pub(crate) fn start_variants(order: &Order, nth: u32) -> Result<Vec<Started>, Error> {
    let (src, dst) = (WorkDir::open(&order.src_dir)?, WorkDir::open(&order.dst_dir)?);
    let dirs = ScratchDirs { src, dst, seed: order.seed };
    let workload = workload::by_name(&order.cell.workload)
        .ok_or_else(|| Error::Unknown(format!("no workload '{}'", order.cell.workload)))?;
    let setting = Setting { cell: &order.cell, dirs: &dirs, nth };
    let wanted: Vec<usize> = order.rounds.iter().flatten().copied().collect();
    let start = |(index, variant): (usize, &String)| {
        let started = match wanted.contains(&index) {
            true => (workload.start)(&setting, without_label(variant)),
            false => Err(NotRun::Refused(String::new())),
        };
        started.map_or_else(|why| Ok(Err(why.refusal()?)), |ready| Ok(Ok(ready)))
    };
    order.variants.iter().enumerate().map(start).collect()
}
