//! The names of `use` items.

use syn::ext::IdentExt;
use syn::visit::Visit;
use syn::{Ident, Item, ItemMod, ItemUse, UseTree};

/// One name of a `use` item.
pub(super) struct Leaf {
    pub(super) path: Vec<String>,
    pub(super) line: usize,
    /// What the file calls it. `None`: a glob.
    pub(super) name: Option<String>,
}

/// The name without the `r#` of a raw identifier.
pub(super) fn name(ident: &Ident) -> String {
    ident.unraw().to_string()
}

/// The names of a `use` item. Empty where it begins with `::`, which names another crate.
pub(super) fn leaves(item: &ItemUse) -> Vec<Leaf> {
    let mut leaves = Vec::new();
    if item.leading_colon.is_none() {
        add_leaves(&item.tree, &[], &mut leaves);
    }
    leaves
}

/// The names of the `use` items inside of a function or of the functions of an item.
pub(super) fn inside(item: &Item) -> Vec<Leaf> {
    let mut inner = Inner(Vec::new());
    inner.visit_item(item);
    inner.0
}

struct Inner(Vec<Leaf>);

impl<'ast> Visit<'ast> for Inner {
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.0.extend(leaves(item));
    }

    fn visit_item_mod(&mut self, _: &'ast ItemMod) {}
}

fn add_leaves(tree: &UseTree, prefix: &[String], leaves: &mut Vec<Leaf>) {
    let with = |ident: &Ident| {
        let mut path = prefix.to_vec();
        // `use a::{self}` names `a`.
        if ident != "self" || prefix.is_empty() {
            path.push(name(ident));
        }
        path
    };
    match tree {
        UseTree::Path(tree) => add_leaves(&tree.tree, &with(&tree.ident), leaves),
        UseTree::Group(group) => {
            group.items.iter().for_each(|tree| add_leaves(tree, prefix, leaves));
        }
        UseTree::Name(tree) => {
            let path = with(&tree.ident);
            let (name, line) = (path.last().cloned(), tree.ident.span().start().line);
            leaves.push(Leaf { path, line, name });
        }
        UseTree::Rename(tree) => {
            let (name, line) = (Some(name(&tree.rename)), tree.ident.span().start().line);
            leaves.push(Leaf { path: with(&tree.ident), line, name });
        }
        UseTree::Glob(tree) => {
            let line = tree.star_token.spans[0].start().line;
            leaves.push(Leaf { path: prefix.to_vec(), line, name: None });
        }
    }
}
