//! The two scratch directories of a session, and the sources in them.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use crate::definition::cell::{Cell, Shape};
use crate::error::Error;
use crate::scratch::WorkDir;
use crate::scratch::files::write_random;

/// The two scratch directories of an experiment, which may be one and the same.
#[derive(Debug)]
pub struct ScratchDirs {
    /// Holds sources, which last as long as the experiment.
    pub src: WorkDir,
    /// Holds what runs make.
    pub dst: WorkDir,
    /// The seed of all random bytes.
    pub seed: u64,
}

/// The longest of files that differ in length over the shortest.
const MIXED_SPREAD: f64 = 512.0;

/// Entries of one directory of a tree.
const TREE_FANOUT: u32 = 16;

impl ScratchDirs {
    /// The source of run `nth` of those at once in `cell`: a file, or a directory of files. It is
    /// made when it is not there yet, of random bytes, which no file system can shorten by
    /// compression or find twice, and written to the medium.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn source(&self, cell: &Cell, nth: u32) -> Result<PathBuf, Error> {
        let shape = match cell.shape {
            Shape::File => String::new(),
            shape => format!("-{}-{}", shape.word(), cell.files),
        };
        let name = format!("src-{}{shape}-{nth}", cell.file_bytes);
        let path = self.src.path().join(name);
        if path.exists() {
            return Ok(path);
        }
        let mut rng = fastrand::Rng::with_seed(self.seed ^ cell.file_bytes ^ u64::from(nth) << 48);
        if cell.shape == Shape::File {
            make_file(&path, cell.file_bytes, &mut rng)?;
        } else {
            for (file, bytes) in (0..cell.files).zip(lengths(cell, &mut rng)) {
                let below = path.join(place_of(file, cell.shape));
                let parent = below.parent().unwrap_or(&path);
                std::fs::create_dir_all(parent).map_err(Error::path("cannot create", parent))?;
                make_file(&below, bytes, &mut rng)?;
            }
            rustix::fs::syncfs(self.src.dir()).map_err(Error::path("cannot sync", &path))?;
        }
        Ok(path)
    }
}

/// The bytes of each file of a cell. Those that differ are spread evenly on a logarithmic scale, as sizes in home
/// directories about are, and have the cell's bytes together.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Positive, and less than the sum.
fn lengths(cell: &Cell, rng: &mut fastrand::Rng) -> Vec<u64> {
    if !cell.shape.is_mixed() {
        return vec![cell.file_bytes; cell.files as usize];
    }
    let weights: Vec<f64> = (0..cell.files).map(|_| MIXED_SPREAD.powf(rng.f64())).collect();
    let bytes_of_weight = cell.run_bytes() as f64 / weights.iter().sum::<f64>();
    let mut lengths: Vec<u64> =
        weights.iter().map(|weight| ((weight * bytes_of_weight) as u64).max(1)).collect();
    let left = cell.run_bytes().saturating_sub(lengths.iter().sum());
    if let Some(last) = lengths.last_mut() {
        *last += left;
    }
    lengths
}

/// Where file `index` lies below its source.
fn place_of(index: u32, shape: Shape) -> PathBuf {
    let name = format!("f{index}");
    if !shape.is_tree() {
        return PathBuf::from(name);
    }
    let mut place = PathBuf::new();
    let mut rest = index / TREE_FANOUT;
    while rest > 0 {
        place.push(format!("d{}", rest % TREE_FANOUT));
        rest /= TREE_FANOUT;
    }
    place.join(name)
}

fn make_file(path: &Path, bytes: u64, rng: &mut fastrand::Rng) -> Result<(), Error> {
    let file = write_random(path, bytes, rng)?;
    rustix::fs::fdatasync(file.as_fd()).map_err(Error::path("cannot sync", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_made_once_and_whole() {
        let home = tempfile::tempdir().expect("created");
        let open = || WorkDir::open(home.path()).expect("opened");
        let dirs = ScratchDirs { src: open(), dst: open(), seed: 3 };
        let plain = Cell::plain("p", "copy", 3000);
        let mut cell = Cell { files: 40, shape: Shape::Tree, ..plain };
        let tree = dirs.source(&cell, 0).expect("made");
        let load = crate::source::Source::open(&tree).expect("opened").whole();
        assert_eq!((load.parts.len(), load.bytes), (40, 40 * 3000));
        assert!(tree.join("d1/f16").is_file() && tree.join("d2/f39").is_file());
        cell.shape = Shape::MixedTree;
        let mixed = dirs.source(&cell, 0).expect("made");
        let load = crate::source::Source::open(&mixed).expect("opened").whole();
        assert_eq!((load.parts.len(), load.bytes), (40, 40 * 3000));
        let lengths = || load.parts.iter().map(|part| part.bytes);
        assert!(lengths().min() < Some(300) && lengths().max() > Some(6000), "{load:?}");
        cell.shape = Shape::File;
        let file = dirs.source(&cell, 1).expect("made");
        let bytes = std::fs::read(&file).expect("read");
        assert_eq!(bytes.len(), 3000);
        assert_ne!(dirs.source(&cell, 0).map(std::fs::read).expect("made").expect("read"), bytes);
        std::fs::write(&file, "kept").expect("written");
        assert_eq!(dirs.source(&cell, 1).expect("there"), file);
        assert_eq!(std::fs::read(&file).expect("read"), b"kept");
    }
}
