//! The module tree of a crate: which file holds which module, what names a module has, and which file
//! defines what a path names.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use syn::visit::Visit;
use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, Expr, ImplItem, Item, ItemMod, ItemUse, Meta, TraitItem, UseTree};

/// The index of a file in [`Modules::files`].
pub(super) type FileId = usize;
/// The index of a module.
pub(super) type ModuleId = usize;

/// The production modules of a crate. What is compiled for tests only is left out.
#[derive(Default)]
pub(super) struct Modules {
    pub(super) files: Vec<SourceFile>,
    modules: Vec<Module>,
}

/// A file that a `mod` declaration leads to.
pub(super) struct SourceFile {
    /// From the crate's folder: `src/entry.rs`.
    pub(super) path: String,
    pub(super) module: ModuleId,
    pub(super) items: Vec<Item>,
}

struct Module {
    file: FileId,
    parent: Option<ModuleId>,
    /// One name may be a module and a function.
    names: BTreeMap<String, Vec<Binding>>,
    globs: Vec<Leaf>,
}

enum Binding {
    Item(FileId),
    Macro(FileId),
    Module(ModuleId),
    Import(Leaf),
}

/// One name of a `use` item.
pub(super) struct Leaf {
    pub(super) path: Vec<String>,
    pub(super) line: usize,
    /// What the file calls it. `None`: a glob.
    name: Option<String>,
}

/// What a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Item {
        file: FileId,
        name: String,
    },
    Module(ModuleId),
    /// Of another crate, re-exported.
    Outside,
}

impl Modules {
    /// Reads the modules of the crate with these files: path to text.
    pub(super) fn read(sources: &BTreeMap<String, String>) -> anyhow::Result<Modules> {
        let mut modules = Modules::default();
        for root in ["src/lib.rs", "src/main.rs"] {
            if sources.contains_key(root) {
                modules.load(sources, root, None)?;
            }
        }
        if modules.files.is_empty() {
            bail!("no src/lib.rs and no src/main.rs");
        }
        Ok(modules)
    }

    /// The files in the order of their names.
    pub(super) fn paths(&self) -> Vec<String> {
        let mut paths: Vec<String> = self.files.iter().map(|file| file.path.clone()).collect();
        paths.sort_unstable();
        paths
    }

    /// What `path` names in the code of `from`; more than one where a name is a module and a function.
    /// Empty: nothing of this crate.
    pub(super) fn resolve(&self, from: ModuleId, path: &[String]) -> Vec<Target> {
        self.resolve_import(from, path, &mut Vec::new())
    }

    /// The file of the `macro_rules!` of that name in a module around `from`.
    pub(super) fn textual_macro(&self, from: ModuleId, name: &str) -> Option<FileId> {
        let around = std::iter::successors(Some(from), |&module| self.modules[module].parent);
        around.into_iter().find_map(|module| {
            self.modules[module].names.get(name)?.iter().find_map(|binding| match binding {
                Binding::Macro(file) => Some(*file),
                _ => None,
            })
        })
    }

    /// The module `mod name { .. }` in the code of `parent`.
    pub(super) fn inline_module(&self, parent: ModuleId, name: &str) -> Option<ModuleId> {
        self.modules[parent].names.get(name)?.iter().find_map(|binding| match binding {
            Binding::Module(id) if self.modules[*id].file == self.modules[parent].file => Some(*id),
            _ => None,
        })
    }

    fn load(
        &mut self,
        sources: &BTreeMap<String, String>,
        path: &str,
        parent: Option<ModuleId>,
    ) -> anyhow::Result<ModuleId> {
        let text = sources.get(path).with_context(|| format!("{path} is missing"))?;
        let mut syntax = syn::parse_file(text)
            .map_err(|error| anyhow::anyhow!("{path}:{}: {error}", error.span().start().line))?;
        WithoutTests.visit_file_mut(&mut syntax);
        let file = self.files.len();
        self.files.push(SourceFile { path: path.to_owned(), module: 0, items: Vec::new() });
        let (dir, stem) = split(path);
        let children = match stem {
            "mod" => dir.to_owned(),
            _ if parent.is_none() => dir.to_owned(),
            _ => format!("{dir}/{stem}"),
        };
        let module = self.declare(sources, file, parent, &children, &syntax.items)?;
        self.files[file].module = module;
        self.files[file].items = syntax.items;
        Ok(module)
    }

    /// Adds the module of `file` with these items, and the modules in it. `children` is the folder of
    /// their files.
    fn declare(
        &mut self,
        sources: &BTreeMap<String, String>,
        file: FileId,
        parent: Option<ModuleId>,
        children: &str,
        items: &[Item],
    ) -> anyhow::Result<ModuleId> {
        let id = self.modules.len();
        let (names, globs) = (BTreeMap::new(), Vec::new());
        self.modules.push(Module { file, parent, names, globs });
        let mut inner = InnerUses(Vec::new());
        for item in items {
            match item {
                Item::Use(item) => leaves(item).into_iter().for_each(|leaf| self.import(id, leaf)),
                Item::Mod(item) => {
                    let child = match &item.content {
                        Some((_, items)) => {
                            let children = format!("{children}/{}", item.ident);
                            self.declare(sources, file, Some(id), &children, items)?
                        }
                        None => {
                            let path = self.file_of(sources, file, children, item);
                            self.load(sources, &path, Some(id))?
                        }
                    };
                    self.bind(id, item.ident.to_string(), Binding::Module(child));
                }
                Item::Macro(item) => {
                    if let Some(ident) = &item.ident {
                        self.bind(id, ident.to_string(), Binding::Macro(file));
                        if item.attrs.iter().any(|attr| attr.path().is_ident("macro_export")) {
                            self.bind(self.root_of(id), ident.to_string(), Binding::Macro(file));
                        }
                    }
                }
                _ => {
                    if let Some(name) = item_name(item) {
                        self.bind(id, name, Binding::Item(file));
                    }
                    inner.visit_item(item);
                }
            }
        }
        // A `use` inside a function counts for the whole module, unless the module has another such name.
        for leaf in inner.0 {
            if leaf.name.as_ref().is_some_and(|name| !self.modules[id].names.contains_key(name)) {
                self.import(id, leaf);
            }
        }
        Ok(id)
    }

    fn import(&mut self, module: ModuleId, leaf: Leaf) {
        match leaf.name.clone() {
            Some(name) => self.bind(module, name, Binding::Import(leaf)),
            None => self.modules[module].globs.push(leaf),
        }
    }

    fn bind(&mut self, module: ModuleId, name: String, binding: Binding) {
        self.modules[module].names.entry(name).or_default().push(binding);
    }

    /// The file of `mod x;` in `declaring`.
    fn file_of(
        &self,
        sources: &BTreeMap<String, String>,
        declaring: FileId,
        children: &str,
        item: &ItemMod,
    ) -> String {
        if let Some(path) = item.attrs.iter().find_map(path_attribute) {
            return format!("{}/{path}", split(&self.files[declaring].path).0);
        }
        let folder = format!("{children}/{}/mod.rs", item.ident);
        if sources.contains_key(&folder) {
            return folder;
        }
        format!("{children}/{}.rs", item.ident)
    }

    fn root_of(&self, module: ModuleId) -> ModuleId {
        let around = std::iter::successors(Some(module), |&module| self.modules[module].parent);
        around.last().unwrap_or(module)
    }

    /// `open` are the imports that are being resolved: each is followed once.
    fn resolve_import<'a>(
        &'a self,
        from: ModuleId,
        path: &[String],
        open: &mut Vec<&'a Leaf>,
    ) -> Vec<Target> {
        let Some((first, rest)) = path.split_first() else { return Vec::new() };
        let mut targets = self.names_of(from, first, open);
        if first == "crate" {
            targets = vec![Target::Module(self.root_of(from))];
        }
        for name in rest {
            let modules: Vec<ModuleId> = targets.iter().filter_map(Target::module).collect();
            if modules.is_empty() {
                // A variant or an associated item.
                break;
            }
            targets.clear();
            for module in modules {
                let found = self.names_of(module, name, open);
                if found.is_empty() {
                    // Made by a macro, perhaps.
                    let file = self.modules[module].file;
                    targets.push(Target::Item { file, name: name.clone() });
                }
                targets.extend(found);
            }
        }
        targets
    }

    /// What `name` is in `module`.
    fn names_of<'a>(
        &'a self,
        module: ModuleId,
        name: &str,
        open: &mut Vec<&'a Leaf>,
    ) -> Vec<Target> {
        let here = &self.modules[module];
        match name {
            "self" => return vec![Target::Module(module)],
            "super" => return here.parent.map(Target::Module).into_iter().collect(),
            _ => {}
        }
        let mut targets = Vec::new();
        for binding in here.names.get(name).into_iter().flatten() {
            match binding {
                Binding::Item(file) | Binding::Macro(file) => {
                    targets.push(Target::Item { file: *file, name: name.to_owned() });
                }
                Binding::Module(id) => targets.push(Target::Module(*id)),
                Binding::Import(leaf) if open.iter().any(|open| std::ptr::eq(*open, leaf)) => {}
                Binding::Import(leaf) => {
                    open.push(leaf);
                    let found = self.resolve_import(module, &leaf.path, open);
                    open.pop();
                    if found.is_empty() {
                        targets.push(Target::Outside);
                    }
                    targets.extend(found);
                }
            }
        }
        if !targets.is_empty() {
            return targets;
        }
        for leaf in &here.globs {
            if open.iter().any(|open| std::ptr::eq(*open, leaf)) {
                continue;
            }
            open.push(leaf);
            for target in self.resolve_import(module, &leaf.path, open) {
                if let Target::Module(from) = target {
                    targets.extend(self.names_of(from, name, open));
                }
            }
            open.pop();
        }
        targets
    }
}

impl Target {
    fn module(&self) -> Option<ModuleId> {
        match self {
            Target::Module(id) => Some(*id),
            Target::Item { .. } | Target::Outside => None,
        }
    }
}

/// The names of a `use` item. None where it begins with `::`, which is another crate.
pub(super) fn leaves(item: &ItemUse) -> Vec<Leaf> {
    let mut leaves = Vec::new();
    if item.leading_colon.is_none() {
        add_leaves(&item.tree, &[], &mut leaves);
    }
    leaves
}

fn add_leaves(tree: &UseTree, prefix: &[String], leaves: &mut Vec<Leaf>) {
    let with = |ident: &syn::Ident| {
        let mut path = prefix.to_vec();
        // `use a::{self}` names `a`.
        if ident != "self" || prefix.is_empty() {
            path.push(ident.to_string());
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
            let name = Some(tree.rename.to_string());
            leaves.push(Leaf {
                path: with(&tree.ident),
                line: tree.ident.span().start().line,
                name,
            });
        }
        UseTree::Glob(tree) => {
            let line = tree.star_token.spans[0].start().line;
            leaves.push(Leaf { path: prefix.to_vec(), line, name: None });
        }
    }
}

/// The `use` items inside of functions.
struct InnerUses(Vec<Leaf>);

impl<'ast> Visit<'ast> for InnerUses {
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.0.extend(leaves(item));
    }

    fn visit_item_mod(&mut self, _: &'ast ItemMod) {}
}

fn item_name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

/// `src/walk/mod.rs` to `src/walk` and `mod`.
fn split(path: &str) -> (&str, &str) {
    let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
    (dir, name.strip_suffix(".rs").unwrap_or(name))
}

fn path_attribute(attr: &Attribute) -> Option<String> {
    match &attr.meta {
        Meta::NameValue(meta) if meta.path.is_ident("path") => match &meta.value {
            Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(path), .. }) => Some(path.value()),
            _ => None,
        },
        _ => None,
    }
}

/// Empties whatever is compiled for tests only.
struct WithoutTests;

/// The attributes of a node with these variants.
macro_rules! attributes {
    ($node:expr, $kind:ident: $($variant:ident)*) => {
        match $node {
            $($kind::$variant(node) => node.attrs.as_slice(),)*
            _ => &[],
        }
    };
}

impl VisitMut for WithoutTests {
    fn visit_item_mut(&mut self, item: &mut Item) {
        let attrs = attributes!(item, Item: Const Enum ExternCrate Fn ForeignMod Impl Macro Mod Static
                                      Struct Trait TraitAlias Type Union Use);
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
            arm.body = Box::new(Expr::Verbatim(Default::default()));
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
