//! Making and removing files, with errors that name the path.

use std::io::Write;
use std::path::Path;

use crate::error::Error;

/// Removes a file or a whole directory; what is not there is no error.
///
/// # Errors
/// When it cannot be removed.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    let removed = match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
        Err(_) => return Ok(()),
    };
    removed.map_err(Error::path("cannot remove", path))
}

/// Makes a file of random bytes, which no file system can shorten by compression or find twice.
///
/// # Errors
/// When it cannot be made or written.
pub fn write_random(
    path: &Path,
    bytes: u64,
    rng: &mut fastrand::Rng,
) -> Result<std::fs::File, Error> {
    let mut file = std::fs::File::create(path).map_err(Error::path("cannot create", path))?;
    let mut block = vec![0; 1 << 20];
    let mut left = bytes;
    while left > 0 {
        #[allow(clippy::cast_possible_truncation)] // At most the length of a block.
        let piece = &mut block[..left.min(1 << 20) as usize];
        rng.fill(piece);
        file.write_all(piece).map_err(Error::path("cannot write", path))?;
        left -= piece.len() as u64;
    }
    Ok(file)
}
