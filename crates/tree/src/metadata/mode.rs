//! The mode of a new file: what it is created with, and what it gets at the end.

use rustix::fs::{Mode, Stat};

use crate::request::{Keep, ModeRule, Options};

/// The permissions that a new file is made with, and those that it should end up with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NewMode {
    pub(crate) initial: Mode,
    pub(crate) wanted: Mode,
}

/// The mode of a new file, fifo or device made from one of mode `src`.
pub(crate) fn new_file_mode(
    options: &Options,
    src: &Stat,
    umask: Mode,
    inherits_acl: bool,
) -> NewMode {
    let permissions = Mode::from_raw_mode(src.st_mode & 0o777);
    let asked = match options.preserve.mode {
        ModeRule::Fresh => Mode::from_raw_mode(0o666),
        ModeRule::Umask | ModeRule::Preserve => permissions,
    };
    // Attributes follow: until they are there nobody else has any business with the file.
    let initial =
        if is_created_private(options, inherits_acl) { Mode::RUSR | Mode::WUSR } else { asked };
    NewMode { initial, wanted: asked & !umask }
}

/// Whether a new file has to be kept private until its attributes are set.
pub(crate) fn sets_attributes_later(options: &Options) -> bool {
    options.preserve.mode == ModeRule::Preserve
        || options.preserve.ownership
        || options.preserve.xattr != Keep::No
}

/// Whether what is made loses the list that its directory gives it: with `--no-preserve=mode` its
/// mode is that of one without. Until the list is gone it lets nobody in.
pub(crate) fn drops_inherited_acl(options: &Options, inherits_acl: bool) -> bool {
    inherits_acl && options.preserve.mode == ModeRule::Fresh
}

/// Whether what is made lets nobody in until its attributes are as they are to be.
pub(crate) fn is_created_private(options: &Options, inherits_acl: bool) -> bool {
    sets_attributes_later(options) || drops_inherited_acl(options, inherits_acl)
}
