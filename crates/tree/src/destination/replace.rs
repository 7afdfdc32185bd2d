//! Replacing a name in one step.

use rustix::fs::{AtFlags, renameat, unlinkat};
use rustix::io;

use super::temp_name::create_temporary;
use crate::fs::Place;
use crate::security::Security;

/// Makes something beside `dst`, of which `src` is the source, that takes its name then.
pub(crate) fn replace_by(
    security: &Security,
    src: &Place<'_>,
    dst: &Place<'_>,
    make: impl Fn(&Place<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let (beside, ()) =
        create_temporary(security, src, (dst.dir, dst.name), |name| make(&Place { name, ..*dst }))?;
    let renamed = renameat(dst.dir, &*beside, dst.dir, dst.name);
    // Two names of one file are both left standing by a rename.
    let _ = unlinkat(dst.dir, &*beside, AtFlags::empty());
    renamed
}
