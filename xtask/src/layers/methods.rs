//! Methods that a file defines for a type of another file: `impl crate::b::B {..}` in src/a.rs.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};
use syn::{ImplItem, ItemImpl, ItemMod, ItemTrait, TraitItem, Type};

use super::modules::{FileId, ModuleId, Modules, Target};
use super::uses;

/// Where methods are defined.
pub(super) struct Methods {
    /// By their names, without those that the crate defines elsewhere too: which of the methods a
    /// call means is not known.
    pub(super) away_from_their_type: BTreeMap<String, FileId>,
}

impl Methods {
    pub(super) fn of(modules: &Modules) -> Methods {
        let mut found = BTreeMap::new();
        for (id, file) in modules.files.iter().enumerate() {
            let (module, found) = (file.module, &mut found);
            let mut reader = Reader { modules, file: id, module, found };
            file.items.iter().for_each(|item| reader.visit_item(item));
        }
        let only_away = found.into_iter().filter_map(|(name, file)| Some((name, file?)));
        Methods { away_from_their_type: only_away.collect() }
    }
}

struct Reader<'a> {
    modules: &'a Modules,
    file: FileId,
    module: ModuleId,
    /// `None`: defined with its type, in a trait, or in more than one file.
    found: &'a mut BTreeMap<String, Option<FileId>>,
}

impl Reader<'_> {
    fn add(&mut self, name: String, file: Option<FileId>) {
        let known = self.found.entry(name).or_insert(file);
        if *known != file {
            *known = None;
        }
    }

    fn is_of_another_file(&self, of: &Type) -> bool {
        let Type::Path(of) = of else { return false };
        let path: Vec<String> =
            of.path.segments.iter().map(|part| uses::name(&part.ident)).collect();
        let targets = self.modules.resolve(self.module, &path);
        targets.iter().any(|to| matches!(to, Target::Item { file, .. } if *file != self.file))
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        let inside = self.modules.inline_module(self.module, &uses::name(&item.ident));
        if let Some(inside) = inside {
            let around = std::mem::replace(&mut self.module, inside);
            visit::visit_item_mod(self, item);
            self.module = around;
        }
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        let is_away = item.trait_.is_none() && self.is_of_another_file(&item.self_ty);
        for member in &item.items {
            if let ImplItem::Fn(function) = member {
                self.add(uses::name(&function.sig.ident), is_away.then_some(self.file));
            }
        }
        visit::visit_item_impl(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast ItemTrait) {
        for member in &item.items {
            if let TraitItem::Fn(function) = member {
                self.add(uses::name(&function.sig.ident), None);
            }
        }
    }
}
