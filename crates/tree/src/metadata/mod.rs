//! Attributes of a copy: owner, mode, access control lists, extended attributes, times.

pub(crate) mod acl;
pub(crate) mod apply;
pub(crate) mod mode;
pub(crate) mod replaced;
pub(crate) mod set;

pub(crate) use acl::{denied_by_default_acl, has_default_acl, inherited_acl_matters};
pub(crate) use apply::{apply, kept, reads_xattrs};
pub(crate) use mode::{
    NewMode, drops_inherited_acl, is_created_private, new_file_mode, sets_attributes_later,
};
pub(crate) use replaced::apply_replaced;
pub(crate) use set::{MetadataContext, Source, Target, set_permissions};
