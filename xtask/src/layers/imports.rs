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

type Path = Vec<String>;

/// The modules of a crate, and the files that they are in.
#[derive(Default)]
pub(super) struct Crate {
    pub(super) files: BTreeMap<Path, String>,
    /// What `use` calls another path, in a module.
    aliases: BTreeMap<(Path, String), Path>,
    mentions: Vec<Mention>,
}

/// A path in the code of a module.
struct Mention {
    module: Path,
    path: Path,
    line: usize,
    is_re_export: bool,
}

impl Crate {
    pub(super) fn read(sources: &Sources) -> anyhow::Result<Crate> {
        let mut this = Crate::default();
        for root in sources.keys() {
            if root == "lib" || root == "main" || root.starts_with("bin/") {
                this.load(sources, root, vec![root.clone()])?;
            }
        }
        Ok(this)
    }

    fn load(&mut self, sources: &Sources, file: &str, module: Path) -> anyhow::Result<()> {
        let text = sources.get(file).with_context(|| format!("{file}.rs is missing"))?;
        let stream = text.parse().map_err(|error| anyhow!("{file}.rs: {error}"))?;
        let words = words(stream);
        self.files.insert(module.clone(), file.to_owned());
        self.scan(&module, &words, None);
        let parent =
            file.rsplit_once('/').map_or(String::new(), |(parent, _)| format!("{parent}/"));
        let is_folder = module.len() == 1 || file.ends_with("/mod");
        let folder = if is_folder { parent } else { format!("{file}/") };
        for window in words.windows(3) {
            let [keyword, name, end] = window else { continue };
            if (keyword.text.as_str(), end.text.as_str()) == ("mod", ";") {
                let (beside, child) = (format!("{folder}{}", name.text), name.text.clone());
                let inside = format!("{beside}/mod");
                let path = if sources.contains_key(&inside) { inside } else { beside };
                self.load(sources, &path, [module.as_slice(), &[child]].concat())?;
            }
        }
        Ok(())
    }

    /// Reads the paths among `words`: those of code, or of a `use` after the names of a prefix.
    fn scan(&mut self, module: &Path, words: &[Word], of_use: Option<(&Path, bool)>) {
        let text = |at: usize| words.get(at).map_or("", |word| word.text.as_str());
        let mut at = 0;
        while at < words.len() {
            let (begin, line) = (at, words[at].line);
            // Not that of `impl Trait + use<'a>`.
            if text(at) == "use" && text(at + 1) != "<" && of_use.is_none() {
                let rest = &words[at + 1..];
                let end = rest.iter().position(|word| word.text == ";").unwrap_or(rest.len());
                let is_re_export = at > 0 && ["pub", "("].contains(&text(at - 1));
                self.scan(module, &rest[..end], Some((&Path::new(), is_re_export)));
                at += end + 1;
                continue;
            }
            if (text(at), text(at + 2)) == ("mod", "{") {
                let child = [module.as_slice(), &[text(at + 1).to_owned()]].concat();
                self.files.insert(child.clone(), self.files[module].clone());
                self.scan(&child, &words[at + 2].inner, None);
                at += 3;
                continue;
            }
            if (text(at), text(at + 1)) == ("macro_rules", "!") {
                // Where it is exported, it is at the root.
                let [root, path] = [&module[..1], &module[1..]].map(<[String]>::to_vec);
                let name = text(at + 2).to_owned();
                let path = [vec!["crate".to_owned()], path, vec![name.clone()]].concat();
                self.aliases.insert((root, name), path);
            }
            let mut path = of_use.map_or(Path::new(), |(prefix, _)| prefix.clone());
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
            let of_group = if at > begin { of_use.map(|(_, re)| (&path, re)) } else { of_use };
            if let Some(word) = words.get(at).filter(|word| !word.inner.is_empty()) {
                self.scan(module, &word.inner, of_group);
                at += 1;
                if of_use.is_some() {
                    continue;
                }
            } else if at == begin {
                // A member is no path.
                at += if text(at) == "." { 2 } else { 1 };
                continue;
            }
            if of_use.is_some() {
                let mut alias = path.last().cloned().unwrap_or_default();
                if text(at) == "as" {
                    alias = text(at + 1).to_owned();
                    at += 2;
                }
                if text(at) == "*" {
                    path.push("*".to_owned());
                } else {
                    self.aliases.insert((module.clone(), alias), path.clone());
                }
            }
            // What a file re-exports, it may use besides.
            let is_type = |name: &String| name.starts_with(char::is_uppercase);
            if path.len() > 1 || path.first().is_some_and(is_type) {
                let is_re_export = of_use.is_some_and(|(_, is_re_export)| is_re_export);
                self.mentions.push(Mention { module: module.clone(), path, line, is_re_export });
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
                && self.files[&target] != self.files[module]
                && !(*is_re_export && target.starts_with(module))
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

    /// Where a path leads. What is named through a re-export is found where it is defined.
    fn resolve(&self, from: &Path, path: &[String], depth: usize) -> Option<Target> {
        let (first, rest) = path.split_first().filter(|_| depth < 20)?;
        let mut found = match first.as_str() {
            "crate" => (from[..1].to_vec(), None),
            "self" => (from.clone(), None),
            "super" => (from[..from.len().saturating_sub(1)].to_vec(), None),
            name => self.look_up(from, name, rest.is_empty(), depth)??,
        };
        for (index, name) in rest.iter().enumerate() {
            let (module, None) = found else { break };
            found = match self.look_up(&module, name, index + 1 == rest.len(), depth) {
                Some(found) => found?,
                None if name == "super" => {
                    (module[..module.len().saturating_sub(1)].to_vec(), None)
                }
                None => (module, Some(name.clone())),
            };
        }
        self.files.contains_key(&found.0).then_some(found)
    }

    /// What is known of `name` in `module`; `Some(None)`: it is of another crate. A function may have the name of a
    /// module; as the last name of a path it is meant.
    fn look_up(
        &self,
        module: &Path,
        name: &str,
        is_last: bool,
        depth: usize,
    ) -> Option<Option<Target>> {
        let child = [module.as_slice(), &[name.to_owned()]].concat();
        let is_module = self.files.contains_key(&child);
        match self.aliases.get(&(module.clone(), name.to_owned())) {
            Some(path) if is_last || !is_module => Some(self.resolve(module, path, depth + 1)),
            _ => is_module.then_some(Some((child, None))),
        }
    }
}

/// A module, and a name in it unless it is the module itself that is named.
type Target = (Path, Option<String>);

/// A token, with those inside of it: of a group, or of a literal that is a path, as in attributes.
struct Word {
    text: String,
    line: usize,
    inner: Vec<Word>,
}

fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// First words of items, in which a comma is not the end.
const ITEMS: &[&str] =
    &["async", "const", "enum", "fn", "impl", "pub", "struct", "trait", "type", "unsafe", "use"];

/// The words of production code. `::` and `..` are one word, and `$` is none.
fn words(stream: TokenStream) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    for tree in stream {
        let line = tree.span().start().line;
        let (text, inner) = match tree {
            TokenTree::Punct(punct) => match (punct.as_char(), words.last_mut()) {
                ('$', _) => continue,
                (next @ (':' | '.'), Some(last)) if last.text == next.to_string() => {
                    last.text.push(next);
                    continue;
                }
                (other, _) => (other.to_string(), Vec::new()),
            },
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
                let is_attribute_of_tests = words.last().is_some_and(|last| last.text == "#")
                    && is_for_tests(&group.stream().to_string());
                let open = match group.delimiter() {
                    Delimiter::Parenthesis => "(",
                    Delimiter::Bracket if is_attribute_of_tests => FOR_TESTS,
                    Delimiter::Bracket => "[",
                    Delimiter::Brace | Delimiter::None => "{",
                };
                (open.to_owned(), self::words(group.stream()))
            }
        };
        words.push(Word { text, line, inner });
    }
    // From an attribute to the end of an item, a field or an arm.
    let (mut skips, mut is_item) = (false, false);
    words.retain(|word| {
        is_item = if word.text == FOR_TESTS {
            false
        } else {
            is_item || ITEMS.contains(&word.text.as_str())
        };
        let was_skipped = skips;
        skips |= word.text == FOR_TESTS;
        if ["{", ";"].contains(&word.text.as_str()) || word.text == "," && !is_item {
            skips = false;
        }
        !was_skipped && word.text != FOR_TESTS
    });
    words
}

/// The text of an attribute that leaves its item to tests alone.
const FOR_TESTS: &str = "#[test]";

fn is_for_tests(attribute: &str) -> bool {
    let has = |word| attribute.contains(word);
    attribute == "test" || attribute.starts_with("cfg") && has("test") && !has("not") && !has("any")
}
