//! The module tree of a crate: which file holds which module, what names a module has, and
//! which file defines what a path names.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use syn::{Attribute, Expr, Item, ItemMod, Meta};

use super::uses::{self, Leaf, leaves, name};
use super::without_tests;

/// The index of a file in [`Modules::files`].
pub(super) type FileId = usize;
/// The index of a module.
pub(super) type ModuleId = usize;

/// Which code of a crate is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    /// What is compiled for tests only is left out.
    Production,
    All,
}

/// The modules of a crate.
pub(super) struct Modules {
    code: Code,
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

/// What a path names.
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
    pub(super) fn read(code: Code, sources: &BTreeMap<String, String>) -> anyhow::Result<Modules> {
        let mut modules = Modules { code, files: Vec::new(), modules: Vec::new() };
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

    /// What `path` names in the code of `from`; more than one where a name is a module and a
    /// function. Empty: nothing of this crate.
    pub(super) fn resolve(&self, from: ModuleId, path: &[String]) -> Vec<Target> {
        self.resolve_import(from, path, &mut Vec::new())
    }

    /// The file of the `macro_rules!` of that name in a module around `from`.
    pub(super) fn textual_macro(&self, from: ModuleId, name: &str) -> Option<FileId> {
        self.around(from).find_map(|module| {
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

    /// Whether `file` holds a module inside of that of `outer`.
    pub(super) fn is_inside(&self, file: FileId, outer: FileId) -> bool {
        let outer = self.files[outer].module;
        self.around(self.files[file].module).any(|module| module == outer)
    }

    /// The file that `module` is declared in.
    pub(super) fn file_of_module(&self, module: ModuleId) -> FileId {
        self.modules[module].file
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
        if self.code == Code::Production {
            without_tests::strip(&mut syntax);
        }
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

    /// Adds the module of `file` with these items, and the modules in it. `children` is the folder
    /// of their files.
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
        let mut inner = Vec::new();
        for item in items {
            match item {
                Item::Use(item) => leaves(item).into_iter().for_each(|leaf| self.import(id, leaf)),
                Item::Mod(item) => {
                    let child = match &item.content {
                        Some((_, items)) => {
                            let children = format!("{children}/{}", name(&item.ident));
                            self.declare(sources, file, Some(id), &children, items)?
                        }
                        None => {
                            let path = self.file_of(sources, file, children, item);
                            self.load(sources, &path, Some(id))?
                        }
                    };
                    self.bind(id, name(&item.ident), Binding::Module(child));
                    if item.attrs.iter().any(|attr| attr.path().is_ident("macro_use")) {
                        self.bind_macros(id, child);
                    }
                }
                Item::ExternCrate(item) if item.ident == "self" => {
                    if parent.is_none() {
                        bail!(
                            "`extern crate self` is a name in all modules, which is not followed"
                        );
                    }
                    if let Some((_, own_name)) = &item.rename {
                        self.bind(id, name(own_name), Binding::Module(self.root_of(id)));
                    }
                }
                Item::Macro(item) => {
                    if let Some(ident) = &item.ident {
                        self.bind(id, name(ident), Binding::Macro(file));
                        if item.attrs.iter().any(|attr| attr.path().is_ident("macro_export")) {
                            self.bind(self.root_of(id), name(ident), Binding::Macro(file));
                        }
                    }
                }
                _ => {
                    if let Some(name) = item_name(item) {
                        self.bind(id, name, Binding::Item(file));
                    }
                    inner.extend(uses::inside(item));
                }
            }
        }
        // A `use` in a function counts for the whole module.
        inner.into_iter().for_each(|leaf| self.import(id, leaf));
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

    /// The macros of `child` are those of `module` too: `#[macro_use] mod child;`.
    fn bind_macros(&mut self, module: ModuleId, child: ModuleId) {
        let mut macros = Vec::new();
        for (name, bindings) in &self.modules[child].names {
            for binding in bindings {
                if let Binding::Macro(file) = binding {
                    macros.push((name.clone(), Binding::Macro(*file)));
                }
            }
        }
        macros.into_iter().for_each(|(name, binding)| self.bind(module, name, binding));
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
        let folder = format!("{children}/{}/mod.rs", name(&item.ident));
        if sources.contains_key(&folder) {
            return folder;
        }
        format!("{children}/{}.rs", name(&item.ident))
    }

    fn root_of(&self, module: ModuleId) -> ModuleId {
        self.around(module).last().unwrap_or(module)
    }

    /// `module` and those that it is in, from the inside to the outside.
    fn around(&self, module: ModuleId) -> impl Iterator<Item = ModuleId> {
        std::iter::successors(Some(module), |&module| self.modules[module].parent)
    }

    /// `open` are the imports that are being resolved, which may lead back to themselves.
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
    Some(name(ident))
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
