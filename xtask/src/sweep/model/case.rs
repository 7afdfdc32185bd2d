//! One case: a tree, who copies, and a command line.

use anyhow::{Context, bail};

use super::item::{self, Item};
use super::meaning::{self, Command, Meaning, Unspecified};
use super::options::{Options, Word};
use super::tree::Tree;

/// User and group of the ordinary user: nobody's on every Linux.
const NOBODY: u32 = 65534;

/// Who copies. All that names no owner is theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Persona {
    Root,
    Nobody,
}

impl Persona {
    pub(super) fn id(self) -> u32 {
        match self {
            Persona::Root => 0,
            Persona::Nobody => NOBODY,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Persona::Root => "root",
            Persona::Nobody => "nobody",
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) persona: Persona,
    pub(super) umask: u32,
    pub(super) items: Vec<Item>,
    pub(super) words: Vec<&'static Word>,
    pub(super) sources: Vec<String>,
    pub(super) destination: String,
}

impl Case {
    /// `USER UMASK | TREE | WORDS`.
    pub(super) fn text(&self) -> String {
        let line = self.line(|word| word.text);
        let (name, umask) = (self.persona.name(), self.umask);
        format!("{name} {umask:03o} | {} | {}", item::text_of(&self.items), line.join(" "))
    }

    pub(super) fn parse(text: &str) -> anyhow::Result<Case> {
        let form = || format!("'{text}' is not of the form USER UMASK | TREE | WORDS");
        let parts: Vec<&str> = text.split(" | ").collect();
        let [who, tree, line] = parts[..] else { bail!(form()) };
        let (name, umask) = who.split_once(' ').with_context(form)?;
        let persona = [Persona::Root, Persona::Nobody].into_iter().find(|it| it.name() == name);
        let mut words = Vec::new();
        let (mut operands, mut target) = (Vec::new(), None);
        let mut rest = line.split_whitespace();
        while let Some(text) = rest.next() {
            match Word::of(text) {
                Some(word) => words.push(word),
                None if text.starts_with('-') => bail!("'{text}' is no option of the model"),
                None => operands.push(text.to_owned()),
            }
            if text == "-t" {
                target = rest.next().map(str::to_owned);
            }
        }
        let destination = target.or_else(|| operands.pop()).with_context(form)?;
        Ok(Case {
            persona: persona.with_context(form)?,
            umask: u32::from_str_radix(umask, 8)?,
            items: item::parse_items(tree)?,
            words,
            sources: operands,
            destination,
        })
    }

    /// The command line, each option in the form that `of_word` gives it.
    pub(super) fn line(&self, of_word: impl Fn(&'static Word) -> &'static str) -> Vec<String> {
        let mut line = Vec::new();
        for word in &self.words {
            line.push(of_word(word).to_owned());
            if word.text == "-t" {
                line.push(self.destination.clone());
            }
        }
        line.extend(self.sources.iter().cloned());
        if !self.has("-t") {
            line.push(self.destination.clone());
        }
        line
    }

    pub(super) fn has(&self, text: &str) -> bool {
        self.words.iter().any(|word| word.text == text)
    }

    /// Whether an option of this group is among them.
    pub(super) fn has_group(&self, group: &str) -> bool {
        self.words.iter().any(|word| word.group == group)
    }

    /// Whether there is a file that the user who copies may not read.
    pub(super) fn has_unreadable_file(&self) -> bool {
        let is_unreadable = |item: &Item| item.mode.is_some_and(|mode| mode & 0o400 == 0);
        self.persona != Persona::Root && self.items.iter().any(is_unreadable)
    }

    pub(super) fn options(&self) -> Options {
        Options::new(&self.words)
    }

    /// The tree before the copy.
    pub(super) fn tree(&self) -> anyhow::Result<Tree> {
        item::tree(&self.items, self.persona.id())
    }

    /// What has to come of it in `before`.
    pub(super) fn meaning(&self, before: &Tree) -> Result<Meaning, Unspecified> {
        let command = Command {
            options: self.options(),
            sources: self.sources.clone(),
            destination: self.destination.clone(),
        };
        let user = meaning::User { id: self.persona.id(), umask: self.umask };
        meaning::meaning(before, &command, user)
    }

    /// The subject of the case, for the counts.
    pub(super) fn subject(&self) -> &'static str {
        const SUBJECTS: &[(&str, &str)] = &[
            ("parents", "--parents"),
            ("making", "-l, -s, --attributes-only"),
            ("backup", "backups"),
            ("existing", "-n, -u"),
            ("removal", "--remove-destination"),
            ("target", "-t, -T"),
            ("following", "-d, -P, -L, -H"),
            ("recursion", "trees"),
        ];
        let found = SUBJECTS.iter().find(|(group, _)| self.has_group(group));
        found.map_or("files", |(_, subject)| subject)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::Time;
    use super::*;

    #[test]
    fn a_case_is_read_as_it_is_written() {
        for text in
            ["root 022 | a=one; d/p| | -a --backup=numbered a d t", "nobody 077 |  | -t t -p a"]
        {
            assert_eq!(Case::parse(text).expect("a case").text(), text);
        }
        for wrong in ["root 022 | a=one", "root 022 | a=one | --what a b", "eve 022 | a= | a b"] {
            assert!(Case::parse(wrong).is_err(), "{wrong}");
        }
    }

    /// The tree of a text in which ` now` follows what has a time of the run.
    fn tree_after(text: &str, owner: u32) -> Tree {
        let items = item::parse_items(&text.replace(" now", "")).expect("items");
        let mut tree = item::tree(&items, owner).expect("a tree");
        for (item, part) in items.iter().zip(text.split("; ")) {
            if part.contains(" now") {
                let found = tree.find(&item.path, false).expect("a way");
                tree.node_mut(found.id.expect("it is there")).time = Time::Now;
            }
        }
        tree
    }

    #[test]
    fn the_model_means_what_the_manual_says() {
        for (case, after, named) in [
            ("root 022 | a=one t=2000 | a b", "a=one t=2000; b=one now", ""),
            (
                "root 022 | a= mode=600 t=2000 | -p a b",
                "a= mode=600 t=2000; b= mode=600 t=2000",
                "",
            ),
            ("root 077 | a= mode=755 | a b", "a= mode=755; b= mode=700 now", ""),
            ("root 022 | a=; t/ | a t", "a=; t/ now; t/a= now", ""),
            ("root 022 | a=one; b=two | -b a b", "a=one; b=one now; b~=two", ""),
            ("root 022 | a=1; b=2 | --backup=numbered a b", "a=1; b=1 now; b.~1~=2", ""),
            ("root 022 | a=one; b=two | -n a b", "a=one; b=two", ""),
            ("root 022 | d/; t->gone | -r d/. t/", "d/; t->gone", "t/"),
            ("root 022 | d/d=; t/ | -a -b d/d d t", "d/d=; t/ now; t/d~=; t/d/; t/d/d=", ""),
            ("root 022 | a=one | -b a a", "a=one", "a"),
            ("root 022 | a=one | -f -b a a", "a=one; a~=one now", ""),
            ("root 022 | a=one; t/ | -f -S.k ./a ./a", "a=one; a.k=one now; t/", ""),
            ("root 022 | a=one; b->a | -b b b", "a=one; b->a", "b"),
            ("root 022 | a=one; b->a | --remove-destination -l b b", "a=one; b->a", "b"),
            (
                "root 022 | a=; t/ | --backup=numbered a ./a t",
                "a=; t/ now; t/a= now; t/a.~1~= now",
                "",
            ),
            ("root 022 | a=1; b=2 | --update=none-fail a b", "a=1; b=2", "b"),
            ("root 022 | a=one t=2000; b=two | -u a b", "a=one t=2000; b=one now", ""),
            ("root 022 | a=one; b=two t=2000 | -u a b", "a=one; b=two t=2000", ""),
            ("root 022 | a=one; b=two | -l a b", "a=one; b=two", "b"),
            ("root 022 | a=one; b=two | -l -f a b", "a=one; b==a", ""),
            ("root 022 | a=one | -s a b", "a=one; b->a now", ""),
            ("root 022 | a=one; t/ | -s a t", "a=one; t/", "t/a"),
            ("root 022 | a=; b->a | -d b c", "a=; b->a; c->a now", ""),
            ("root 022 | a=; b->a | b c", "a=; b->a; c= now", ""),
            ("root 022 | a=; b->c | a b", "a=; b->c", "b"),
            ("root 022 | a=; b->c | --remove-destination a b", "a=; b= now", ""),
            ("root 022 | d/; t/d=one | -r d t", "d/; t/d=one", "t/d"),
            ("root 022 | a=; b/a/ | -T a b", "a=; b/a/", "b"),
            ("root 022 | d/a=; t/ | --parents d/a t", "d/a=; t/ now; t/d/ now; t/d/a= now", ""),
            ("root 022 | d/a=; d/b==d/a | -a d t", "d/a=; t/a=; d/b==d/a; t/b==t/a", ""),
            ("root 022 | a=one | --attributes-only a b", "a=one; b= now", ""),
            // -H follows operands alone, and a link replaces what is in its way.
            ("root 022 | d/b->a; t/d/b->a | -H -r d t", "d/b->a; t/d/ now; t/d/b->a now", ""),
            (
                "root 022 | d/a=; t/ | -r -L --preserve=links d d/a t",
                "d/a=; t/ now; t/d/ now; t/d/a= now; t/a==t/d/a now",
                "",
            ),
            ("root 022 | d/ | d t", "d/", "d"),
            ("root 022 | a=one | a a", "a=one", "a"),
            ("nobody 022 | a= mode=200 | a b", "a= mode=200", "a"),
            ("nobody 022 | a=1; b=2 mode=444 | a b", "a=1; b=2 mode=444", "b"),
            ("nobody 022 | a=1; b=2 mode=444 | -f a b", "a=1; b=1 now", ""),
        ] {
            let case = Case::parse(case).expect("a case");
            let meaning = case.meaning(&case.tree().expect("a tree")).expect("it is specified");
            let text = case.text();
            assert_eq!(
                (meaning.named.join(" "), meaning.fails),
                (named.to_owned(), !named.is_empty()),
                "{text}"
            );
            let mut found = tree_after(after, case.persona.id()).differences(&meaning.tree);
            // The working directory has a time, too.
            found.retain(|line| !line.starts_with(".: "));
            assert_eq!(found, Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn what_is_left_to_the_program_is_not_specified() {
        for case in [
            // The copy of one goes through a link that the other has made.
            "root 022 | d/a=1; d/b=2; t/a->b | -r d/. t",
            // The link through which the destination is named is removed.
            "root 022 | d/a=; t/a->../t | --remove-destination d/a t/a",
            // The directory that --parents has made is the one to copy into.
            "root 022 | d/a=; t/ | -r --parents d/. t",
            // -f may replace a link that leads to itself.
            "root 022 | a=; b->b | -f a b",
            // The link through which the source is named is renamed.
            "root 022 | d/a=; s->d | -a -b s/ .",
            // A link of another user in the destination.
            "root 022 | d/a=; t/e/; t/d->e own=1 | --parents d/a t",
            // A name that may be made under another one first.
            "nobody 022 | a=; t->b | -P -f t t/",
            // One name that is written in two ways.
            "nobody 022 | a->d; d~; t/b~ | -S.k --parents a ./a t",
            // A copy of a directory in itself.
            "root 022 | d/a=1 | -r d d/d",
        ] {
            let case = Case::parse(case).expect("a case");
            assert_eq!(
                case.meaning(&case.tree().expect("a tree")),
                Err(Unspecified),
                "{}",
                case.text()
            );
        }
    }
}
