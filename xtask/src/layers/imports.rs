//! Which file names what of which other file of its crate: in `use` items, and in paths anywhere
//! else, the tokens of macros and attributes included.
//!
//! Types are not inferred, so a call of a method is no import of the file that defines the method.
//! Of a glob the names that the file uses are imports. A re-export is an import, unless it is of a
//! module inside of the file's own: that one is part of it. Where a file re-exports a function, a local
//! variable of the same name in that file counts as a use of the function.

use std::fmt;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
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
        let (file_module, imports) = (file.module, &mut imports);
        let mut reader =
            Reader { modules, file: id, module: file_module, in_re_export: false, imports };
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
    in_re_export: bool,
    imports: &'a mut Vec<Import>,
}

impl Reader<'_> {
    /// Adds what `path` leads to, if it is not the name of a module.
    fn name(&mut self, path: &[String], line: usize) {
        for target in self.modules.resolve(self.module, path) {
            // The name of a module alone is no import: what the path through it leads to is one.
            if let Target::Item { file, name } = target {
                self.add(file, name, line);
            }
        }
    }

    /// Adds the module whose names `path::*` takes.
    fn glob(&mut self, path: &[String], line: usize) {
        for target in self.modules.resolve(self.module, path) {
            if let Target::Module(module) = target {
                self.add(self.modules.file_of_module(module), "*".to_owned(), line);
            }
        }
    }

    fn add(&mut self, file: FileId, name: String, line: usize) {
        let is_own_part = self.in_re_export && self.modules.is_inside(file, self.file);
        if file != self.file && !is_own_part {
            let path = |file: FileId| self.modules.files[file].path.clone();
            self.imports.push(Import { from: path(self.file), to: path(file), name, line });
        }
    }

    /// Finds paths among tokens that are not parsed: `name`, `a::b`, `$crate::a::b`, `a::{b, c}`,
    /// `a::*`, `a::$b`.
    fn scan(&mut self, tokens: TokenStream, in_attribute: bool) {
        self.scan_below(&[], tokens, in_attribute);
    }

    /// The same where each path begins with `prefix`.
    fn scan_below(&mut self, prefix: &[String], tokens: TokenStream, in_attribute: bool) {
        let mut path: Vec<String> = prefix.to_vec();
        let mut line = 0;
        // The punctuation since the last name.
        let mut between = String::new();
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if between == "::$" && !path.is_empty() {
                        path.push(format!("${ident}"));
                        between.clear();
                        continue;
                    }
                    if between != "::" || path.is_empty() {
                        self.name(&std::mem::replace(&mut path, prefix.to_vec()), line);
                        line = ident.span().start().line;
                    }
                    let is_member = between.ends_with('.') && !between.ends_with("..");
                    let is_of_another_crate = between.ends_with("::") && path.is_empty();
                    if !is_member && !is_of_another_crate {
                        path.push(ident.to_string());
                    }
                    between.clear();
                }
                TokenTree::Punct(punct) => {
                    between.push(punct.as_char());
                    if between == "::*" {
                        self.glob(&path, line);
                    }
                }
                TokenTree::Group(group) => {
                    let names_below = between == "::" && group.delimiter() == Delimiter::Brace;
                    let path = std::mem::replace(&mut path, prefix.to_vec());
                    between.clear();
                    if names_below {
                        self.scan_below(&path, group.stream(), in_attribute);
                    } else {
                        self.name(&path, line);
                        self.scan(group.stream(), in_attribute);
                    }
                }
                TokenTree::Literal(literal) => {
                    self.name(&std::mem::replace(&mut path, prefix.to_vec()), line);
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
        self.in_re_export = !matches!(item.vis, Visibility::Inherited);
        for leaf in leaves(item) {
            self.name(&leaf.path, leaf.line);
            if self.in_re_export && leaf.name.is_none() {
                self.glob(&leaf.path, leaf.line);
            }
        }
        self.in_re_export = false;
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
