//! Which file names what of which other file of its crate, in production code.
//!
//! Files are read as tokens, so that macros and attributes count like other code, and types are not inferred: a name
//! counts if a path leads to it.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context, anyhow};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A name that one file uses and another defines.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Import {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) name: String,
    line: usize,
}

impl fmt::Display for Import {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} -> {}: {}", self.from, self.line, self.to, self.name)
    }
}

/// The files of a crate, by their paths below `src` without `.rs`.
pub(super) type Sources = BTreeMap<String, String>;

/// The modules of a crate, and the files that they are in.
#[derive(Default)]
pub(super) struct Crate {
    /// By the names of modules, the first of which is the file of the root: `lib::walk::tree`.
    pub(super) files: BTreeMap<String, String>,
    /// What `use` calls another path, in a module.
    aliases: BTreeMap<(String, String), Path>,
    mentions: Vec<Mention>,
}

type Path = Vec<String>;

/// A path in the code of a module.
struct Mention {
    module: String,
    path: Path,
    line: usize,
    is_re_export: bool,
}

impl Crate {
    pub(super) fn read(sources: &Sources) -> anyhow::Result<Crate> {
        let mut this = Crate::default();
        for root in sources.keys() {
            if root == "lib" || root == "main" || root.starts_with("bin/") {
                this.load(sources, root, root.clone())?;
            }
        }
        Ok(this)
    }

    fn load(&mut self, sources: &Sources, file: &str, module: String) -> anyhow::Result<()> {
        let text = sources.get(file).with_context(|| format!("{file}.rs is missing"))?;
        let stream = text.parse().map_err(|error| anyhow!("{file}.rs: {error}"))?;
        let words = words(stream);
        self.files.insert(module.clone(), file.to_owned());
        self.scan(&module, &words, &[], None);
        let is_folder = !module.contains("::") || file.ends_with("/mod");
        let folder =
            if is_folder { file.rsplit_once('/').map(|(folder, _)| folder) } else { Some(file) };
        for window in words.windows(3) {
            let [keyword, name, end] = window else { continue };
            if (keyword.text.as_str(), end.text.as_str()) == ("mod", ";") {
                let beside = folder.map_or(String::new(), |it| format!("{it}/")) + &name.text;
                let inside = format!("{beside}/mod");
                let path = if sources.contains_key(&inside) { inside } else { beside };
                self.load(sources, &path, format!("{module}::{}", name.text))?;
            }
        }
        Ok(())
    }

    /// Reads the paths among `words`: those of code, or of a `use` after `prefix`, which may be a re-export.
    fn scan(&mut self, module: &str, words: &[Word], prefix: &[String], mut of_use: Option<bool>) {
        let text = |at: usize| words.get(at).map_or("", |word| word.text.as_str());
        let mut at = 0;
        while let Some(&Word { line, .. }) = words.get(at) {
            match (text(at), text(at + 1), text(at + 2)) {
                // Not that of `impl Trait + use<'a>`.
                ("use", next, _) if next != "<" => {
                    of_use = Some(at > 0 && ["pub", "("].contains(&text(at - 1)));
                    at += 1;
                    continue;
                }
                ("mod", name, "{") => {
                    let child = format!("{module}::{name}");
                    self.files.insert(child.clone(), self.files[module].clone());
                    self.scan(&child, &words[at + 2].inner, &[], None);
                    at += 3;
                    continue;
                }
                // Where it is exported, it is at the root.
                ("macro_rules", "!", name) => {
                    let path = module.replacen(root_of(module), "crate", 1) + "::" + name;
                    let path = path.split("::").map(str::to_owned).collect();
                    self.aliases.insert((root_of(module).to_owned(), name.to_owned()), path);
                }
                (";", ..) => of_use = None,
                // A member is no path.
                (".", ..) => {
                    at += 2;
                    continue;
                }
                _ => {}
            }
            let (begin, mut path) = (at, prefix.to_vec());
            if text(at) == "::" {
                path.push("another crate".to_owned());
                at += 1;
            }
            while is_name(text(at)) {
                // `use a::{self}` names `a`.
                if text(at) != "self" || path.is_empty() {
                    path.push(text(at).to_owned());
                }
                at += 1;
                if text(at) != "::" {
                    break;
                }
                at += 1;
            }
            if at == begin || of_use.is_some() && text(at) == "{" {
                self.scan(module, &words[at].inner, &path, of_use);
                at += 1;
                continue;
            }
            if of_use.is_some() {
                let is_renamed = text(at) == "as";
                let alias = if is_renamed { text(at + 1) } else { &path[path.len() - 1] };
                if alias != "*" {
                    self.aliases.insert((module.to_owned(), alias.to_owned()), path.clone());
                }
                at += if is_renamed { 2 } else { 0 };
            }
            if path.len() > 1 || path[0].starts_with(char::is_uppercase) {
                let (module, is_re_export) = (module.to_owned(), of_use == Some(true));
                self.mentions.push(Mention { module, path, line, is_re_export });
            }
        }
    }

    /// All imports, each name of a file once. A re-export is one unless it is of a module inside of the file's own:
    /// that one is part of it.
    pub(super) fn imports(&self) -> Vec<Import> {
        let mut imports = Vec::new();
        for Mention { module, path, line, is_re_export } in &self.mentions {
            // The name of a module alone is no import: what a path through it leads to is one.
            if let Some((target, Some(name))) = self.resolve(module, path, 0)
                && self.files.get(&target).is_some_and(|file| *file != self.files[module])
                && !(*is_re_export && target.starts_with(&format!("{module}::")))
            {
                let [from, to] = [module, &target].map(|module| self.files[module].clone());
                imports.push(Import { from, to, name, line: *line });
            }
        }
        imports.sort();
        imports.dedup_by(|next, first| {
            (&next.from, &next.to, &next.name) == (&first.from, &first.to, &first.name)
        });
        imports
    }

    /// Where a path leads: a module, and a name in it unless it is the module itself that is named. What is named
    /// through a re-export is found where it is defined.
    fn resolve(
        &self,
        from: &str,
        path: &[String],
        depth: usize,
    ) -> Option<(String, Option<String>)> {
        let mut found = (from.to_owned(), None);
        for (index, name) in path.iter().enumerate().filter(|_| depth < 20) {
            let (module, None) = found else { break };
            let child = format!("{module}::{name}");
            let is_module = self.files.contains_key(&child);
            found = match (name.as_str(), self.aliases.get(&(module.clone(), name.clone()))) {
                ("crate", _) => (root_of(&module).to_owned(), None),
                ("self", _) => (module, None),
                ("super", _) => (module.rsplit_once("::")?.0.to_owned(), None),
                // A function may have the name of a module; as the last name of a path it is meant.
                (_, Some(alias)) if !is_module || index + 1 == path.len() => {
                    self.resolve(&module, alias, depth + 1)?
                }
                _ if is_module => (child, None),
                // It is local, or of another crate.
                _ if index == 0 => return None,
                _ => (module, Some(name.clone())),
            };
        }
        Some(found).filter(|_| depth < 20)
    }
}

fn root_of(module: &str) -> &str {
    module.split("::").next().unwrap_or(module)
}

/// Whether a word can be in a path. The last name of a `use` may be `*`.
fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_alphabetic() || ['_', '*'].contains(&first))
}

/// A token, with those inside of it: of a group, or of a literal that is a path, as in attributes.
struct Word {
    text: String,
    line: usize,
    inner: Vec<Word>,
}

/// First words of items, in which a comma is not the end.
const ITEMS: &[&str] =
    &["async", "const", "enum", "fn", "impl", "pub", "struct", "trait", "type", "unsafe", "use"];

/// The words of production code. `::` and `..` are one word, and `$` is none.
fn words(stream: TokenStream) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    // From an attribute for tests to the end of an item, or else of a field or an arm.
    let (mut is_for_tests, mut is_item) = (false, false);
    for tree in stream {
        let line = tree.span().start().line;
        let (text, inner) = match tree {
            TokenTree::Punct(punct) => (punct.to_string(), Vec::new()),
            TokenTree::Ident(ident) => {
                (ident.to_string().trim_start_matches("r#").to_owned(), Vec::new())
            }
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                let is_path = text.contains("::") && words.last().is_some_and(|it| it.text == "=");
                let path = text.trim_matches('"').parse().ok().filter(|_| is_path);
                ("\"".to_owned(), path.map_or(Vec::new(), self::words))
            }
            TokenTree::Group(group) => {
                let is_attribute = words.last().is_some_and(|last| last.text == "#");
                if is_attribute && !is_for_tests && leaves_to_tests(&group.stream().to_string()) {
                    (is_for_tests, is_item) = (true, false);
                    continue;
                }
                let open = match group.delimiter() {
                    Delimiter::Parenthesis => "(",
                    Delimiter::Bracket => "[",
                    Delimiter::Brace | Delimiter::None => "{",
                };
                (open.to_owned(), self::words(group.stream()))
            }
        };
        if is_for_tests {
            is_item |= ITEMS.contains(&text.as_str());
            is_for_tests = !(["{", ";"].contains(&text.as_str()) || text == "," && !is_item);
            continue;
        }
        match words.last_mut() {
            _ if text == "$" => {}
            Some(last) if [":", "."].contains(&&*text) && last.text == text => last.text += &text,
            _ => words.push(Word { text, line, inner }),
        }
    }
    words
}

/// Whether an attribute leaves its item to tests alone.
fn leaves_to_tests(attribute: &str) -> bool {
    let has = |word| attribute.contains(word);
    attribute == "test" || attribute.starts_with("cfg") && has("test") && !has("not") && !has("any")
}
