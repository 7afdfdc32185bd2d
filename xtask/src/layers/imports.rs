//! Which file names what of which other file of its crate: in `use` items, and in paths anywhere
//! else, the tokens of macros and attributes included.
//!
//! Types are not inferred, so a call of a method is no import of the file that defines the method.
//! Of a glob the names that the file uses are imports. Where a file re-exports a function, a local
//! variable of the same name in that file counts as a use of the function.

use std::fmt;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, ItemMod, ItemUse, Macro, Meta, Path, Visibility};

use super::modules::{FileId, ModuleId, Modules, Target};
use super::uses::leaves;

/// A name that one file uses and another defines.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Import {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) name: String,
    /// Where `from` has it first.
    pub(super) line: usize,
}

impl fmt::Display for Import {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} -> {}: {}", self.from, self.line, self.to, self.name)
    }
}

/// All imports of a crate, by file, each name once.
pub(super) fn all(modules: &Modules) -> Vec<Import> {
    let mut imports = Vec::new();
    for (id, file) in modules.files.iter().enumerate() {
        let mut reader = Reader { modules, file: id, module: file.module, imports: &mut imports };
        file.items.iter().for_each(|item| reader.visit_item(item));
    }
    imports.sort();
    imports.dedup_by(|next, first| {
        (&next.from, &next.to, &next.name) == (&first.from, &first.to, &first.name)
    });
    imports
}

struct Reader<'a> {
    modules: &'a Modules,
    file: FileId,
    module: ModuleId,
    imports: &'a mut Vec<Import>,
}

impl Reader<'_> {
    fn name(&mut self, path: &[String], line: usize) {
        for target in self.modules.resolve(self.module, path) {
            // The name of a module alone is no import: what the path through it leads to is one.
            if let Target::Item { file, name } = target {
                self.add(file, name, line);
            }
        }
    }

    fn add(&mut self, file: FileId, name: String, line: usize) {
        if file != self.file {
            let path = |file: FileId| self.modules.files[file].path.clone();
            self.imports.push(Import { from: path(self.file), to: path(file), name, line });
        }
    }

    /// Finds paths among tokens that are not parsed: `name`, `a::b`, `$crate::a::b`.
    fn scan(&mut self, tokens: TokenStream, in_attribute: bool) {
        let mut path: Vec<String> = Vec::new();
        let mut line = 0;
        // The punctuation since the last name.
        let mut between = String::new();
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if between != "::" || path.is_empty() {
                        self.name(&std::mem::take(&mut path), line);
                        line = ident.span().start().line;
                    }
                    let is_member = between.ends_with('.') && !between.ends_with("..");
                    let is_of_another_crate = between.ends_with("::") && path.is_empty();
                    if !is_member && !is_of_another_crate {
                        path.push(ident.to_string());
                    }
                    between.clear();
                }
                TokenTree::Punct(punct) => between.push(punct.as_char()),
                TokenTree::Group(group) => {
                    self.name(&std::mem::take(&mut path), line);
                    between.clear();
                    self.scan(group.stream(), in_attribute);
                }
                TokenTree::Literal(literal) => {
                    self.name(&std::mem::take(&mut path), line);
                    between.clear();
                    // #[serde(default = "module::function")]
                    if in_attribute
                        && let syn::Lit::Str(text) = syn::Lit::new(literal)
                        && let Ok(path) = text.parse::<Path>()
                        && path.segments.len() > 1
                    {
                        self.visit_path(&path);
                    }
                }
            }
        }
        self.name(&path, line);
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        // What is visible outside is a re-export.
        if matches!(item.vis, Visibility::Inherited) {
            for leaf in leaves(item) {
                self.name(&leaf.path, leaf.line);
            }
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        let inside = self.modules.inline_module(self.module, &item.ident.to_string());
        if let (Some(inside), Some((_, items))) = (inside, &item.content) {
            let around = std::mem::replace(&mut self.module, inside);
            items.iter().for_each(|item| self.visit_item(item));
            self.module = around;
        }
    }

    fn visit_path(&mut self, path: &'ast Path) {
        if path.leading_colon.is_none()
            && let Some(first) = path.segments.first()
        {
            let names: Vec<String> =
                path.segments.iter().map(|part| part.ident.to_string()).collect();
            self.name(&names, first.ident.span().start().line);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, node: &'ast Macro) {
        if let Some(name) = node.path.get_ident() {
            if let Some(file) = self.modules.textual_macro(self.module, &name.to_string()) {
                self.add(file, name.to_string(), name.span().start().line);
            }
        } else {
            self.visit_path(&node.path);
        }
        self.scan(node.tokens.clone(), false);
    }

    fn visit_attribute(&mut self, attr: &'ast Attribute) {
        if let Meta::List(list) = &attr.meta {
            self.scan(list.tokens.clone(), true);
        }
    }

    /// `pub(in crate::a)` names no item.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}
}
