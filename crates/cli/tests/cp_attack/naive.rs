//! A copier without any precaution, to see that the harness sees.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, chown, symlink};
use std::path::Path;

/// Copies the tree `src` to `dst` by paths.
pub(crate) fn copy(src: &Path, dst: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(src)?;
    let kind = metadata.file_type();
    if kind.is_dir() {
        // Whatever goes wrong with one entry stops no other.
        let _ = fs::create_dir(dst);
        for entry in fs::read_dir(src)? {
            let name = entry?.file_name();
            let _ = copy(&src.join(&name), &dst.join(&name));
        }
    } else if kind.is_symlink() {
        return symlink(fs::read_link(src)?, dst);
    } else if kind.is_file() {
        fs::copy(src, dst)?;
    } else {
        assert!(kind.is_fifo() || kind.is_char_device(), "there is nothing else");
        return Ok(());
    }
    chown(dst, Some(metadata.uid()), Some(metadata.gid()))?;
    fs::set_permissions(dst, metadata.permissions())
}
