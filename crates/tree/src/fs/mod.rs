//! One kernel subject a file, without any policy of copying.

pub(crate) mod dir;
mod dir_path;
pub(crate) mod dirty_pages;
pub(crate) mod fs_type;
pub(crate) mod open;
pub(crate) mod place;
pub(crate) mod process;
pub(crate) mod readdir;
mod spelling;
pub(crate) mod stat;
pub(crate) mod xattr;

pub(crate) use dir::{
    DIRECTORY, Dir, SEARCH, enter, enter_destination, enter_for_search, is_within,
    open_destination, open_for_search, open_operand, placeholder_dir,
};
pub(crate) use dir_path::{Anchor, DirPath, join};
pub(crate) use engines::fs_types::{BTRFS, EXT4, TMPFS, VFAT, XFS, fs_type_of};
pub(crate) use fs_type::{Endpoint, Endpoints, FsTypes, is_pseudo, is_reliable, is_served, is_smb};
pub(crate) use open::{
    FileAt, OpenFile, cannot_be_linked, give_name, hold, hold_found, id_by_name, is_named,
    is_renamed_instead, open_listed, open_looked_at, open_to_write, path_in, path_of,
    rename_if_absent, retry_for, stat_new,
};
pub(crate) use place::{
    DisplayPath, Place, Trust, c_name, last_component, last_component_verbatim, split, trim_slashes,
};
pub(crate) use process::Caller;
pub(crate) use readdir::{Buffer, Listing, each_name, is_component};
pub(crate) use spelling::{
    KeptNames, are_one_name, are_one_name_where, has_alias, have_one_directory, is_kept_everywhere,
    keeps_spellings, may_be_one_name, may_have_spellings, may_number_spellings, names_like,
    open_above, try_odd_name, without_end,
};
pub(crate) use stat::{
    FileId, are_one_file, atime, ctime, data_bytes, file_bytes, is_directory, is_file, is_one_file,
    is_regular, is_renumbered, is_still, is_symlink, keeps_number, kind, lstat, mtime,
};
pub(crate) use xattr::{
    ACL_ACCESS, ACL_DEFAULT, CONTEXT, Class, Handle, acl_mode, is_mode_as_nfs4_acl, may_have_any,
};
