//! What cp means: the tree, the exit status and the files that messages name, from the tree before, the options and
//! the operands. A pure function, without a system call.
//!
//! It says what the manual of GNU cp says, and what GNU cp does where that says nothing. It says nothing of what
//! hangs on the order in which a directory lists its names.

use std::collections::BTreeMap;

use super::options::{Backup, Existing, Follow, Make, Options, Sparse, Target};
use super::tree::{Blocks, Content, Found, Id, Node, ROOT, Time, Tree, What};

/// A command line.
#[derive(Clone, Debug)]
pub(super) struct Command {
    pub(super) options: Options,
    pub(super) sources: Vec<String>,
    pub(super) destination: String,
}

/// Who runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct User {
    pub(super) id: u32,
    pub(super) umask: u32,
}

impl User {
    /// Whether permission bits do not matter.
    fn is_root(self) -> bool {
        self.id == 0
    }
}

/// What has to come of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Meaning {
    pub(super) tree: Tree,
    pub(super) fails: bool,
    /// A file for each message, in no order. A command line that is refused names none.
    pub(super) named: Vec<String>,
}

/// The manual says nothing of such a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unspecified;

/// The meaning of `command` in `before`.
///
/// # Errors
/// If it is not specified.
pub(super) fn meaning(
    before: &Tree,
    command: &Command,
    user: User,
) -> Result<Meaning, Unspecified> {
    let in_order = Copier::new(before, command, user, false).run()?;
    let reversed = Copier::new(before, command, user, true).run()?;
    // `named` has no order.
    let is_same = in_order.tree.differences(&reversed.tree).is_empty()
        && in_order.named == reversed.named
        && in_order.fails == reversed.fails;
    if is_same { Ok(in_order) } else { Err(Unspecified) }
}

struct Copier<'a> {
    command: &'a Command,
    options: &'a Options,
    user: User,
    /// Whether directories list their names backwards.
    lists_backwards: bool,
    tree: Tree,
    fails: bool,
    named: Vec<String>,
    /// The copy of each source with several names, and of each directory.
    copies: BTreeMap<Id, String>,
    /// Where the operands are that are no directories: a directory and a name in it.
    operands: Vec<(Id, String)>,
    /// The copies of operands, if there are several.
    created: Vec<(String, Id)>,
    /// The backups of this run.
    backups: Vec<Id>,
}

/// What is known of source and destination before anything is changed.
struct Pair<'p> {
    src: &'p str,
    src_id: Id,
    /// As it is before the copy.
    src_node: Node,
    dst: &'p str,
    is_operand: bool,
}

/// Whether source and destination are one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Same {
    No,
    /// It is, and is a hard link already.
    Done,
    /// It is, and a copy would destroy it.
    Refused,
}

/// Whether a copy was made. What fails has been told.
type Copied = Result<bool, Unspecified>;

impl<'a> Copier<'a> {
    fn new(before: &Tree, command: &'a Command, user: User, lists_backwards: bool) -> Copier<'a> {
        Copier {
            command,
            options: &command.options,
            user,
            lists_backwards,
            tree: before.clone(),
            fails: false,
            named: Vec::new(),
            copies: BTreeMap::new(),
            operands: Vec::new(),
            created: Vec::new(),
            backups: Vec::new(),
        }
    }

    fn run(mut self) -> Result<Meaning, Unspecified> {
        self.copy_operands()?;
        self.named.sort();
        Ok(Meaning { tree: self.tree, fails: self.fails, named: self.named })
    }

    /// A message that names `file`.
    fn complain(&mut self, file: &str) -> Copied {
        self.named.push(file.to_owned());
        self.fails = true;
        Ok(false)
    }

    fn copy_operands(&mut self) -> Result<(), Unspecified> {
        let Command { options, sources, destination } = self.command;
        let is_directory = self.directory(destination).is_some();
        let into = match options.target {
            Target::Any => is_directory,
            Target::Directory => true,
            Target::Name => false,
        };
        let has_several_names = options.target == Target::Name && sources.len() > 1;
        if options.are_refused()
            || has_several_names
            || (options.has_parents && !into && sources.len() == 1)
        {
            self.fails = true;
            return Ok(());
        }
        if (into || sources.len() > 1) && !is_directory {
            self.complain(destination)?;
            return Ok(());
        }
        for src in sources {
            if options.has_parents {
                self.copy_with_parents(src)?;
            } else if into {
                let base = src.trim_end_matches('/').rsplit('/').next().unwrap_or(src);
                self.copy(src, &joined(destination, base), true)?;
            } else if options.forces && options.backup.is_some() && src == destination {
                self.copy_to_backup(src)?;
            } else {
                self.copy(src, destination, true)?;
            }
        }
        Ok(())
    }

    /// With -f and a backup, a file that is copied onto itself is copied to its backup.
    fn copy_to_backup(&mut self, name: &str) -> Result<(), Unspecified> {
        let mut command = self.command.clone();
        let there = self.tree.find(name, true).ok().filter(|it| self.is_found_file(it));
        if let (Some(_), Some(backup)) = (there, command.options.backup.take()) {
            let (dir, base) = name.rsplit_once('/').map_or(("", name), |(dir, base)| (dir, base));
            let parent = self.tree.find(name, false).map_err(|_| Unspecified)?.parent();
            let backup = self.backup_name(parent, base, backup);
            command.destination = if dir.is_empty() { backup } else { joined(dir, &backup) };
        } else {
            command = self.command.clone();
            command.options.forces = false;
        }
        let made = Copier::new(&self.tree, &command, self.user, self.lists_backwards).run()?;
        (self.tree, self.fails) = (made.tree, made.fails);
        self.named.extend(made.named);
        Ok(())
    }

    fn is_found_file(&self, found: &Found) -> bool {
        found.id.is_some_and(|id| self.tree.is_file(id))
    }

    /// Makes the directories of the source's path in the destination first.
    fn copy_with_parents(&mut self, src: &str) -> Copied {
        let destination = &self.command.destination;
        let path = src.trim_end_matches('/');
        let mut made = Vec::new();
        for (end, _) in path.match_indices('/') {
            let (src_dir, dst_dir) = (&path[..end], joined(destination, &path[..end]));
            // haulage follows no link of another user there, and GNU cp does.
            if self.is_others_symlink(&dst_dir) {
                return Err(Unspecified);
            }
            match self.tree.find(&dst_dir, true) {
                Ok(Found { id: Some(id), .. }) if self.tree.is_directory(id) => continue,
                Ok(Found { id: None, .. }) => {}
                // Which of two reasons is told is left to the program.
                _ if self.directory(src_dir).is_none() => return Err(Unspecified),
                _ => return self.complain(&dst_dir),
            }
            let Some(src_id) = self.directory(src_dir) else {
                return self.complain(src_dir);
            };
            let src_node = self.tree.node(src_id).clone();
            let node = self.new_node(&src_node, What::Directory(BTreeMap::new()));
            let Some(id) = self.name_new(&dst_dir, node) else { return self.complain(&dst_dir) };
            made.push((src_node, id));
        }
        // Whether a directory that was made for it is one to copy into is left to the program.
        if path.ends_with("/.") && !made.is_empty() {
            return Err(Unspecified);
        }
        let copied = self.copy(src, &joined(destination, path), true)?;
        for (src_node, id) in made {
            self.give_attributes(&src_node, id);
        }
        Ok(copied)
    }

    fn is_others_symlink(&self, path: &str) -> bool {
        let there = self.tree.find(path, false).ok().and_then(|found| found.id);
        there.is_some_and(|id| self.tree.is_symlink(id) && self.tree.node(id).owner != self.user.id)
    }

    fn copy(&mut self, src: &str, dst: &str, is_operand: bool) -> Copied {
        let options = self.options;
        let follows = self.follow(is_operand) != Follow::Nothing;
        let Ok(Found { id: Some(src_id), .. }) = self.tree.find(src, follows) else {
            return self.complain(src);
        };
        let is_directory = self.tree.is_directory(src_id);
        if is_directory && !options.is_recursive {
            return self.complain(src);
        }
        if is_operand && self.command.sources.len() > 1 && self.is_named_before(src, src_id) {
            self.named.push(src.to_owned());
            return Ok(true);
        }
        let src_node = self.tree.node(src_id).clone();
        let pair = Pair { src, src_id, src_node, dst, is_operand };
        let writes_into = self.tree.is_file(src_id)
            && options.make == Make::Copy
            && options.backup.is_none()
            && !options.removes_destination;
        if writes_into && !is_operand && self.is_others_symlink(dst) {
            return Err(Unspecified);
        }
        let Ok(there) = self.tree.find(dst, writes_into) else {
            // Whether -f replaces a link that leads to itself is left to the program.
            if options.forces && self.tree.find(dst, false).is_ok() {
                return Err(Unspecified);
            }
            // Which of two reasons is told is left to the program.
            return if self.can_be_read(&pair) { self.complain(dst) } else { Err(Unspecified) };
        };
        match there.id {
            None => self.make(&pair, None),
            Some(old) => self.copy_over(&pair, old),
        }
    }

    /// What is followed where the source is an operand, or is found in one: -H follows operands alone.
    fn follow(&self, is_operand: bool) -> Follow {
        match self.options.follow() {
            Follow::Operands if !is_operand => Follow::Nothing,
            follow => follow,
        }
    }

    /// Copies to a name that something has.
    fn copy_over(&mut self, pair: &Pair<'_>, old: Id) -> Copied {
        let options = self.options;
        let &Pair { src, src_id, dst, .. } = pair;
        let is_directory = self.tree.is_directory(src_id);
        if !is_directory {
            match options.existing {
                Existing::Replace | Existing::ReplaceOlder => {}
                Existing::Keep => return Ok(true),
                Existing::KeepAndFail => return self.complain(dst),
            }
        }
        match self.same(pair, old) {
            Same::No => {}
            // Whether a directory is copied onto itself is left to the program.
            Same::Done if is_directory => return Err(Unspecified),
            Same::Done => return Ok(true),
            Same::Refused => return self.complain(src),
        }
        if !is_directory && options.existing == Existing::ReplaceOlder {
            let [src_time, dst_time] = [src_id, old].map(|id| self.tree.node(id).time);
            if [src_time, dst_time] == [Time::Now; 2] {
                return Err(Unspecified);
            }
            if src_time <= dst_time {
                return match self.earlier_copy(pair) {
                    Some(copy) => self.link_to_copy(&copy, dst),
                    None => Ok(true),
                };
            }
        }
        match (is_directory, self.tree.is_directory(old)) {
            (true, true) => return self.make(pair, Some(old)),
            (false, true) => return self.complain(dst),
            // With a backup the old file gets another name.
            (true, false) if options.backup.is_none() => return self.complain(dst),
            _ => {}
        }
        // With a backup nothing of it is lost: a numbered one, or a directory in its place.
        if options.backup != Some(Backup::Numbered)
            && !is_directory
            && self.created.iter().any(|(name, id)| name == dst && *id == old)
        {
            return self.complain(dst);
        }
        // With --parents one file may be named in two ways, and whether that counts is left to the program.
        let plain = |name: &str| name.replace("/./", "/");
        if !is_directory
            && self.created.iter().any(|(name, _)| name != dst && plain(name) == plain(dst))
        {
            return Err(Unspecified);
        }
        if let Some(backup) = options.backup {
            return self.copy_after_backup(pair, old, backup);
        }
        let is_replaced = options.removes_destination
            || (!options.attributes_only
                && ((options.preserve.links && self.tree.links(old) > 1)
                    || (self.follow(pair.is_operand) == Follow::Nothing
                        && !self.tree.is_file(src_id))));
        if !is_replaced {
            return self.make(pair, Some(old));
        }
        // A file that cannot be read replaces nothing.
        if !self.can_be_read(pair) {
            return self.complain(src);
        }
        if !self.unlink(dst) {
            return self.complain(dst);
        }
        // It may have been a link that leads to its own directory.
        if self.tree.find(dst, false).is_err() {
            return Err(Unspecified);
        }
        self.make(pair, None)
    }

    /// Renames `old`, and gives it its name back if no copy can be made.
    fn copy_after_backup(&mut self, pair: &Pair<'_>, old: Id, backup: Backup) -> Copied {
        let &Pair { src, dst, .. } = pair;
        let Ok(there) = self.tree.find(dst, false) else { return Err(Unspecified) };
        let dir = there.parent();
        let name = self.backup_name(dir, &there.name, backup);
        let in_the_way = self.tree.names(dir).into_iter().find(|(other, _)| *other == name);
        let in_the_way = in_the_way.map(|(_, id)| id);
        let source = self.tree.find(src, false).ok();
        let is_source = source.is_some_and(|it| it.parent() == dir && it.name == name);
        if is_source {
            return self.complain(dst);
        }
        if in_the_way.is_some_and(|id| id == old || self.backups.contains(&id)) {
            return Err(Unspecified);
        }
        if !self.can_be_read(pair) {
            return self.complain(src);
        }
        if !self.may_change(dir) || in_the_way.is_some_and(|id| self.tree.is_directory(id)) {
            return self.complain(dst);
        }
        self.tree.set_name(dir, &there.name, None);
        self.tree.set_name(dir, &name, Some(old));
        self.backups.push(old);
        // It may have been a link that leads to its own directory, or to the source.
        let src_now = self.tree.find(src, true).ok().and_then(|found| found.id);
        if self.tree.find(dst, false).is_err()
            || (self.tree.is_directory(pair.src_id) && src_now != Some(pair.src_id))
        {
            return Err(Unspecified);
        }
        let copied = self.make(pair, None)?;
        let is_free = self.tree.find(dst, false).is_ok_and(|found| found.id.is_none());
        if !copied && is_free {
            self.tree.set_name(dir, &name, None);
            self.tree.set_name(dir, &there.name, Some(old));
        }
        Ok(copied)
    }

    fn backup_name(&self, dir: Id, name: &str, backup: Backup) -> String {
        let names = self.tree.names(dir);
        let numbers = names.iter().filter_map(|(other, _)| {
            let number = other.strip_prefix(name)?.strip_prefix(".~")?.strip_suffix('~')?;
            number.parse::<u32>().ok()
        });
        let last = numbers.max();
        match (backup, last) {
            (Backup::Numbered, _) | (Backup::Existing, Some(_)) => {
                format!("{name}.~{}~", last.unwrap_or(0) + 1)
            }
            _ => format!("{name}{}", self.options.suffix),
        }
    }

    /// Makes the copy. `old` is what stays in its place.
    fn make(&mut self, pair: &Pair<'_>, old: Option<Id>) -> Copied {
        let options = self.options;
        let &Pair { src_id, dst, is_operand, .. } = pair;
        if self.tree.is_directory(src_id) {
            return self.make_directory(pair, old);
        }
        if let Some(copy) = self.earlier_copy(pair) {
            return self.link_to_copy(&copy, dst);
        }
        let keeps_links = options.preserve.links
            && (self.tree.links(src_id) > 1 || self.follow(is_operand) != Follow::Nothing);
        if keeps_links {
            self.copies.insert(src_id, dst.to_owned());
        }
        let copied = match (options.make, self.tree.node(src_id).what.clone()) {
            (Make::HardLink, _) => self.make_hard_link(pair, old),
            (Make::Symlink, _) => self.make_symlink(pair, old),
            (Make::Copy, What::File(content)) => self.copy_file(pair, old, content),
            (Make::Copy, what) => self.copy_special(pair, old, what),
        }?;
        if !copied && keeps_links {
            self.copies.remove(&src_id);
        }
        if copied
            && is_operand
            && self.command.sources.len() > 1
            && let Ok(Found { id: Some(id), .. }) = self.tree.find(dst, false)
        {
            self.created.push((dst.to_owned(), id));
        }
        Ok(copied)
    }

    fn make_directory(&mut self, pair: &Pair<'_>, old: Option<Id>) -> Copied {
        let &Pair { src, src_id, dst, .. } = pair;
        if self.copies.insert(src_id, dst.to_owned()).is_some() {
            return Err(Unspecified);
        }
        let id = match old {
            Some(id) => id,
            None => {
                let Ok(there) = self.tree.find(dst, false) else { return self.complain(dst) };
                // mkdir(2) follows no link, a slash at the end or not.
                let is_link = self.tree.find(dst.trim_end_matches('/'), false);
                if is_link.is_ok_and(|found| found.id.is_some()) {
                    return self.complain(dst);
                }
                // Into itself.
                if self.tree.is_within(there.parent(), src_id) {
                    return Err(Unspecified);
                }
                if there.id.is_some() || !self.may_change(there.parent()) {
                    return self.complain(dst);
                }
                let node = self.new_node(&pair.src_node, What::Directory(BTreeMap::new()));
                let id = self.tree.add(Node { mode: 0o700, ..node });
                self.tree.set_name(there.parent(), &there.name, Some(id));
                id
            }
        };
        if self.tree.is_within(id, src_id) || self.tree.is_within(src_id, id) {
            return Err(Unspecified);
        }
        let mut names = self.tree.names(src_id);
        if self.lists_backwards {
            names.reverse();
        }
        for (name, _) in names {
            self.copy(&joined(src, &name), &joined(dst, &name), false)?;
        }
        if old.is_none() {
            let node = self.new_node(&pair.src_node, What::Fifo);
            self.tree.node_mut(id).mode = node.mode;
        }
        self.give_attributes(&pair.src_node, id);
        Ok(true)
    }

    fn copy_file(&mut self, pair: &Pair<'_>, old: Option<Id>, content: Content) -> Copied {
        let options = self.options;
        let &Pair { src, dst, .. } = pair;
        if !self.can_be_read(pair) {
            return self.complain(src);
        }
        let content = match content {
            _ if options.attributes_only => None,
            Content::Text(text) => Some(Content::Text(text)),
            Content::Sparse(_) => Some(Content::Sparse(match options.sparse {
                Sparse::Auto | Sparse::Always => Blocks::Holes,
                Sparse::Never => Blocks::Full,
            })),
        };
        if let Some(id) = old {
            if self.may(id, 0o200) {
                if let Some(content) = content {
                    let node = self.tree.node_mut(id);
                    node.what = What::File(content);
                    node.time = Time::Now;
                }
                self.give_attributes(&pair.src_node, id);
                return Ok(true);
            }
            if !options.forces || !self.unlink(dst) {
                return self.complain(dst);
            }
        }
        let what = What::File(content.unwrap_or_else(|| Content::Text(String::new())));
        // Nothing is written through a link that leads nowhere.
        self.make_new(pair, what)
    }

    /// Makes a new entry with the attributes of the source.
    fn make_new(&mut self, pair: &Pair<'_>, what: What) -> Copied {
        let node = self.new_node(&pair.src_node, what);
        let Some(id) = self.name_new(pair.dst, node) else { return self.complain(pair.dst) };
        self.give_attributes(&pair.src_node, id);
        Ok(true)
    }

    /// Makes a symbolic link or a fifo like the source.
    fn copy_special(&mut self, pair: &Pair<'_>, old: Option<Id>, what: What) -> Copied {
        let &Pair { dst, .. } = pair;
        // -f replaces what is in the way of a link alone.
        let gives_way = self.options.forces && matches!(what, What::Symlink(_));
        if gives_way && dst.ends_with('/') {
            // It can be made under a temporary name, which sets the time of the directory.
            return Err(Unspecified);
        }
        if old.is_some() && !(gives_way && self.unlink(dst)) {
            return self.complain(dst);
        }
        self.make_new(pair, what)
    }

    fn make_hard_link(&mut self, pair: &Pair<'_>, old: Option<Id>) -> Copied {
        let &Pair { src_id, dst, .. } = pair;
        if old.is_some() && !(self.options.forces && self.unlink(dst)) {
            return self.complain(dst);
        }
        let Ok(there) = self.tree.find(dst, false) else { return self.complain(dst) };
        if there.id.is_some() || !self.may_change(there.parent()) || dst.ends_with('/') {
            return self.complain(dst);
        }
        self.tree.set_name(there.parent(), &there.name, Some(src_id));
        Ok(true)
    }

    fn make_symlink(&mut self, pair: &Pair<'_>, old: Option<Id>) -> Copied {
        let &Pair { src, dst, .. } = pair;
        // The path of the source is from the working directory, and leads there from no other.
        let is_here = self.tree.find(dst, false).is_ok_and(|there| there.parent() == ROOT);
        if !is_here || (old.is_some() && !(self.options.forces && self.unlink(dst))) {
            return self.complain(dst);
        }
        self.make_new(pair, What::Symlink(src.to_owned()))
    }

    /// The copy of the same file under another name, which this one is to be a hard link of.
    fn earlier_copy(&self, pair: &Pair<'_>) -> Option<String> {
        self.options.preserve.links.then(|| self.copies.get(&pair.src_id).cloned()).flatten()
    }

    /// Makes `dst` another name of `copy`, whatever has the name.
    fn link_to_copy(&mut self, copy: &str, dst: &str) -> Copied {
        let id = self.tree.find(copy, false).ok().and_then(|found| found.id).ok_or(Unspecified)?;
        let Ok(there) = self.tree.find(dst, false) else { return self.complain(dst) };
        if there.id == Some(id) {
            return Ok(true);
        }
        if !self.may_change(there.parent()) {
            return self.complain(dst);
        }
        self.tree.set_name(there.parent(), &there.name, Some(id));
        Ok(true)
    }

    /// Gives `node` the free name `dst`. `None` if that cannot be.
    fn name_new(&mut self, dst: &str, node: Node) -> Option<Id> {
        let there = self.tree.find(dst, false).ok()?;
        let is_directory = matches!(node.what, What::Directory(_));
        if there.id.is_some()
            || !self.may_change(there.parent())
            || (dst.ends_with('/') && !is_directory)
        {
            return None;
        }
        let id = self.tree.add(node);
        self.tree.set_name(there.parent(), &there.name, Some(id));
        Some(id)
    }

    /// A new file with the permissions of the source, as far as the umask lets it have them.
    fn new_node(&self, src: &Node, what: What) -> Node {
        let every = if matches!(src.what, What::Directory(_)) { 0o777 } else { 0o666 };
        let mode = if self.options.ignores_mode { every } else { src.mode & 0o777 };
        Node { what, mode: mode & !self.user.umask, time: Time::Now, owner: self.user.id }
    }

    fn give_attributes(&mut self, src: &Node, id: Id) {
        let preserve = self.options.preserve;
        let node = self.tree.node_mut(id);
        if preserve.timestamps {
            node.time = src.time;
        }
        if preserve.ownership && self.user.is_root() {
            node.owner = src.owner;
        }
        if preserve.mode {
            node.mode = src.mode;
        }
    }

    /// Whether another operand is the same name of the same file.
    fn is_named_before(&mut self, src: &str, src_id: Id) -> bool {
        let Ok(found) = self.tree.find(src, false) else { return false };
        if self.tree.is_directory(src_id) || self.options.backup.is_some() {
            return false;
        }
        let place = (found.parent(), found.name);
        let is_known = self.operands.contains(&place);
        self.operands.push(place);
        is_known
    }

    fn directory(&self, path: &str) -> Option<Id> {
        let id = self.tree.find(path, true).ok()?.id?;
        self.tree.is_directory(id).then_some(id)
    }

    fn may(&self, id: Id, bits: u32) -> bool {
        self.user.is_root() || self.tree.node(id).mode & bits == bits
    }

    /// Whether names may be added to and removed from a directory.
    fn may_change(&self, dir: Id) -> bool {
        self.may(dir, 0o300)
    }

    /// Whether the source can be opened, if it is to be read.
    fn can_be_read(&self, pair: &Pair<'_>) -> bool {
        let is_read = self.options.make == Make::Copy && self.tree.is_file(pair.src_id);
        !is_read || self.may(pair.src_id, 0o400)
    }

    /// Removes a name. False if that may not be.
    fn unlink(&mut self, path: &str) -> bool {
        let Ok(there) = self.tree.find(path, false) else { return false };
        let is_allowed = self.may_change(there.parent());
        if is_allowed {
            self.tree.set_name(there.parent(), &there.name, None);
        }
        is_allowed
    }

    /// Whether a copy of `pair` over `old` would be one of a file onto itself.
    fn same(&self, pair: &Pair<'_>, old: Id) -> Same {
        let options = self.options;
        let follow = self.follow(pair.is_operand);
        let (src_is, dst_is) =
            match (self.tree.find(pair.src, false), self.tree.find(pair.dst, false)) {
                (Ok(src), Ok(dst)) => (src, dst),
                _ => return Same::No,
            };
        let has_same_name = src_is.parent() == dst_is.parent() && src_is.name == dst_is.name;
        let (Some(src_link), Some(dst_link)) = (src_is.id, dst_is.id) else { return Same::No };
        let links = [src_link, dst_link].map(|id| self.tree.is_symlink(id));
        let is_one = pair.src_id == old;
        if is_one && options.make == Make::HardLink {
            return Same::Done;
        }
        // The link through which the source is read would be gone.
        let is_own_link = src_link == dst_link && has_same_name && links[0];
        if is_own_link && (options.backup.is_some() || options.removes_destination) {
            return Same::Refused;
        }
        if follow == Follow::Nothing {
            if self.tree.is_symlink(pair.src_id) && self.tree.is_symlink(old) {
                // Links are distinct things, even to one file.
                return match (has_same_name, is_one) {
                    (true, _) => Same::Refused,
                    (false, true) if options.backup.is_none() => Same::Done,
                    (false, _) => Same::No,
                };
            }
        } else if !is_one || (links == [true, true] && options.removes_destination) {
            return Same::No;
        }
        let is_one_name = src_link == dst_link;
        if options.backup.is_some() {
            // The old file is renamed, and the source must not be that file.
            let is_refused = match is_one_name {
                true => has_same_name,
                false => follow != Follow::Nothing && links == [true, false],
            };
            return if is_refused { Same::Refused } else { Same::No };
        }
        if options.removes_destination
            && (links[1] || (is_one_name && self.tree.links(dst_link) > 1 && !has_same_name))
        {
            return Same::No;
        }
        if links == [false, false] && !is_one_name {
            return Same::No;
        }
        if options.make == Make::Symlink && links[1] {
            return Same::No;
        }
        if follow == Follow::Nothing {
            let end = |path: &str| self.tree.find(path, true).ok().and_then(|found| found.id);
            if end(pair.src) != end(pair.dst) {
                return Same::No;
            }
            if options.make == Make::HardLink {
                return if links[1] { Same::No } else { Same::Done };
            }
        }
        Same::Refused
    }
}

/// `dir/name`.
fn joined(dir: &str, name: &str) -> String {
    format!("{}/{name}", dir.trim_end_matches('/'))
}
