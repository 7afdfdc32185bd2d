//! Takes out of a file what is compiled for tests only.

use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, Expr, ImplItem, Item, Meta, TraitItem};

/// Empties whatever is compiled for tests only.
pub(super) fn strip(file: &mut syn::File) {
    Stripper.visit_file_mut(file);
}

struct Stripper;

/// The attributes of a node with these variants.
macro_rules! attributes {
    ($node:expr, $kind:ident: $($variant:ident)*) => {
        match $node {
            $($kind::$variant(node) => node.attrs.as_slice(),)*
            _ => &[],
        }
    };
}

impl VisitMut for Stripper {
    fn visit_file_mut(&mut self, file: &mut syn::File) {
        if file.attrs.iter().any(is_for_tests) {
            file.items.clear();
        }
        visit_mut::visit_file_mut(self, file);
    }

    fn visit_item_mut(&mut self, item: &mut Item) {
        let attrs = attributes!(item, Item: Const Enum ExternCrate Fn ForeignMod Impl Macro Mod
                                      Static Struct Trait TraitAlias Type Union Use);
        if attrs.iter().any(is_for_tests) {
            *item = Item::Verbatim(Default::default());
        }
        visit_mut::visit_item_mut(self, item);
    }

    fn visit_impl_item_mut(&mut self, item: &mut ImplItem) {
        if attributes!(item, ImplItem: Const Fn Type Macro).iter().any(is_for_tests) {
            *item = ImplItem::Verbatim(Default::default());
        }
        visit_mut::visit_impl_item_mut(self, item);
    }

    fn visit_trait_item_mut(&mut self, item: &mut TraitItem) {
        if attributes!(item, TraitItem: Const Fn Type Macro).iter().any(is_for_tests) {
            *item = TraitItem::Verbatim(Default::default());
        }
        visit_mut::visit_trait_item_mut(self, item);
    }

    fn visit_block_mut(&mut self, block: &mut syn::Block) {
        block.stmts.retain(|stmt| {
            let attrs = match stmt {
                syn::Stmt::Local(local) => local.attrs.as_slice(),
                syn::Stmt::Macro(stmt) => stmt.attrs.as_slice(),
                syn::Stmt::Expr(expr, _) => {
                    attributes!(expr, Expr: Assign Block Call If Match MethodCall)
                }
                syn::Stmt::Item(_) => &[],
            };
            !attrs.iter().any(is_for_tests)
        });
        visit_mut::visit_block_mut(self, block);
    }

    fn visit_arm_mut(&mut self, arm: &mut syn::Arm) {
        if arm.attrs.iter().any(is_for_tests) {
            arm.pat = syn::Pat::Verbatim(Default::default());
            *arm.body = Expr::Verbatim(Default::default());
        }
        visit_mut::visit_arm_mut(self, arm);
    }

    fn visit_field_mut(&mut self, field: &mut syn::Field) {
        if field.attrs.iter().any(is_for_tests) {
            field.ty = syn::Type::Verbatim(Default::default());
        }
        visit_mut::visit_field_mut(self, field);
    }

    fn visit_field_value_mut(&mut self, field: &mut syn::FieldValue) {
        if field.attrs.iter().any(is_for_tests) {
            field.expr = Expr::Verbatim(Default::default());
        }
        visit_mut::visit_field_value_mut(self, field);
    }

    fn visit_variant_mut(&mut self, variant: &mut syn::Variant) {
        if variant.attrs.iter().any(is_for_tests) {
            variant.fields = syn::Fields::Unit;
        }
        visit_mut::visit_variant_mut(self, variant);
    }
}

/// Whether this is `#[test]`, or a `#[cfg(..)]` that holds in tests alone.
fn is_for_tests(attr: &Attribute) -> bool {
    attr.path().is_ident("test")
        || attr.path().is_ident("cfg")
            && attr.parse_args::<Meta>().is_ok_and(|condition| holds_in_tests_alone(&condition))
}

fn holds_in_tests_alone(condition: &Meta) -> bool {
    let parts = |list: &syn::MetaList| -> Vec<Meta> {
        let parse = syn::punctuated::Punctuated::<Meta, syn::Token![,]>::parse_terminated;
        list.parse_args_with(parse).into_iter().flatten().collect()
    };
    match condition {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") => {
            parts(list).iter().any(holds_in_tests_alone)
        }
        Meta::List(list) if list.path.is_ident("any") => {
            parts(list).iter().all(holds_in_tests_alone)
        }
        _ => false,
    }
}
