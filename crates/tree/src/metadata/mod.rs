//! Attributes of a copy: owner, extended attributes and access control lists, mode, times.
//!
//! `apply.rs` sets them, in this order. [`apply_replaced`] sets those of the file that a new one
//! replaces with `--atomic`. `set.rs` has the mode that a new file is created with.

mod apply;
mod set;

pub(crate) use apply::{apply, apply_replaced, has_xattrs_of, kept, reads_xattrs};
pub(crate) use set::{
    MetadataContext, NewMode, Source, Target, denied_by_default_acl, drops_inherited_acl,
    has_default_acl, inherited_acl_matters, is_created_private, may_have_default_acl,
    new_file_mode, set_mtime, set_permissions, set_times, sets_attributes_later,
};
