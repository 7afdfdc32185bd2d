//! Which file names what of which other file of its crate: in `use` items, and in paths anywhere
//! else, the tokens of macros and attributes included.
//!
//! Types are not inferred, so a call of a method is no import of the file that defines the method,
//! unless that file defines it for a type of another file, and the crate has no other method of that
//! name.
//! Of a glob the names that the file uses are imports. A re-export is an import, unless it is of a
//! module inside of the file's own: that one is part of it. Where a file re-exports a function, a local
//! variable of the same name in that file counts as a use of the function.

use std::fmt;

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, ExprMethodCall, ItemMod, ItemUse, Macro, Meta, Path, Visibility};

use super::methods::Methods;
use super::modules::{FileId, ModuleId, Modules, Target};
use super::uses::{self, leaves};

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
    let methods = &Methods::of(modules);
    for (id, file) in modules.files.iter().enumerate() {
        let (file_module, imports) = (file.module, &mut imports);
        let (module, in_re_export) = (file_module, false);
        let mut reader = Reader { modules, methods, file: id, module, in_re_export, imports };
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
    methods: &'a Methods,
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
        // `Type::method`, `Self::method`
        if let [.., of, method] = path
            && of.starts_with(char::is_uppercase)
        {
            self.method(method, line);
        }
    }

    /// Adds the file that defines `method` for a type of another file.
    fn method(&mut self, method: &str, line: usize) {
        if let Some(file) = self.methods.away_from_their_type.get(method) {
            self.add(*file, method.to_owned(), line);
        }
    }

    /// Adds the file of the macro that `name!` calls.
    fn textual_macro(&mut self, name: &str, line: usize) {
        if let Some(file) = self.modules.textual_macro(self.module, name) {
            self.add(file, name.to_owned(), line);
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
    /// `a::*`, `a::$b`, `name!`, and methods: `.name()`.
    fn scan(&mut self, tokens: TokenStream, in_attribute: bool) {
        self.scan_below(&[], tokens, in_attribute);
    }

    /// The same where each path begins with `prefix`.
    fn scan_below(&mut self, prefix: &[String], tokens: TokenStream, in_attribute: bool) {
        let mut path: Vec<String> = prefix.to_vec();
        let mut line = 0;
        // The punctuation since the last name.
        let mut between = String::new();
        let mut member: Option<Ident> = None;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if between == "::$" && !path.is_empty() {
                        path.push(format!("${}", uses::name(&ident)));
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
                        path.push(uses::name(&ident));
                    }
                    member = is_member.then_some(ident);
                    between.clear();
                }
                TokenTree::Punct(punct) => {
                    between.push(punct.as_char());
                    match (between.as_str(), path.as_slice()) {
                        ("::*", _) => self.glob(&path, line),
                        ("!", [name]) => self.textual_macro(&name.clone(), line),
                        _ => {}
                    }
                }
                TokenTree::Group(group) => {
                    if let Some(method) = member.take()
                        && group.delimiter() == Delimiter::Parenthesis
                    {
                        self.method(&uses::name(&method), method.span().start().line);
                    }
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
                        && text.value().contains("::")
                        && let Ok(tokens) = text.parse::<TokenStream>()
                    {
                        self.scan(tokens, false);
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
        let inside = self.modules.inline_module(self.module, &uses::name(&item.ident));
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
                path.segments.iter().map(|part| uses::name(&part.ident)).collect();
            self.name(&names, first.ident.span().start().line);
        }
        visit::visit_path(self, path);
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        self.method(&uses::name(&call.method), call.method.span().start().line);
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, node: &'ast Macro) {
        if let Some(name) = node.path.get_ident() {
            self.textual_macro(&uses::name(name), name.span().start().line);
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
