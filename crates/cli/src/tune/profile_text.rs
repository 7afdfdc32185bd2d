//! Edits the text of a profile, and keeps the comments and the layout of its user.

use engines::profile::{MachineChoices, PairChoices, Profile};
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table};

/// The text of `after` with the comments and the layout of `text`, which is that of `before`. New parts
/// have the default layout. A part that replaces another keeps the comment above it.
pub(super) fn edited(text: &str, before: &Profile, after: &Profile) -> String {
    // If an unusual layout makes the result differ from `after`, the layout is lost.
    let is_right = |text: &String| Profile::parse(text).is_ok_and(|read| read.profile == *after);
    edit(text, before, after).filter(is_right).unwrap_or_else(|| after.to_toml())
}

fn edit(text: &str, before: &Profile, after: &Profile) -> Option<String> {
    let mut document: DocumentMut = text.parse().ok()?;
    let old = taken(&mut document, MACHINE);
    let mut machines = ArrayOfTables::new();
    for machine in &after.machines {
        let known = before.machines.iter().position(|old| old.machine == machine.machine);
        let (mut table, pairs) = match known {
            Some(at) => (old.get(at)?.clone(), &before.machines[at].pairs[..]),
            None => (generated(machine.clone())?, &[][..]),
        };
        let old_pairs = taken(&mut table, PAIR);
        let tables = machine.pairs.iter().map(|pair| {
            let same = pairs.iter().position(|old| old == pair);
            if let Some(at) = same {
                return old_pairs.get(at).cloned();
            }
            let mut table = generated_pair(pair)?;
            if let Some(at) = pairs.iter().position(|old| old.is_of_the_same(pair)) {
                *table.decor_mut() = old_pairs.get(at)?.decor().clone();
            }
            Some(table)
        });
        let tables: ArrayOfTables = tables.collect::<Option<Vec<Table>>>()?.into_iter().collect();
        table.insert(PAIR, Item::ArrayOfTables(tables));
        machines.push(table);
    }
    document.insert(MACHINE, Item::ArrayOfTables(machines));
    Some(document.to_string())
}

const MACHINE: &str = "machine";
const PAIR: &str = "pair";

/// Removes the tables `[[key]]` from `table` and returns them.
fn taken(table: &mut Table, key: &str) -> ArrayOfTables {
    match table.remove(key) {
        Some(Item::ArrayOfTables(tables)) => tables,
        _ => ArrayOfTables::new(),
    }
}

fn generated(machine: MachineChoices) -> Option<Table> {
    let text = Profile { machines: vec![machine] }.to_toml();
    let mut document: DocumentMut = text.parse().ok()?;
    let mut table = taken(&mut document, MACHINE).get(0)?.clone();
    forget_positions(&mut table);
    Some(table)
}

fn generated_pair(pair: &PairChoices) -> Option<Table> {
    let pairs = vec![pair.clone()];
    let mut machine = generated(MachineChoices { pairs, ..MachineChoices::default() })?;
    taken(&mut machine, PAIR).get(0).cloned()
}

/// Tables without a position are written in the order of their list.
fn forget_positions(table: &mut Table) {
    table.set_position(None);
    for (_, item) in table.iter_mut() {
        match item {
            Item::Table(table) => forget_positions(table),
            Item::ArrayOfTables(tables) => tables.iter_mut().for_each(forget_positions),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use engines::profile::{Choice, FileSystem, Line, Machine};

    use super::*;

    const BEFORE: &str = r#"# Mine. Do not touch.
version = 1 # of the form

# The old server.
[[machine]]
id = "a" # from its machine-id

# The disk with the films: tuned in May.
[[machine.pair]]
src = { type = "ext4", mount_point = "/films" }
same   =   true

[[machine.pair.choice]]
variant = "splice"   # as fast as anything

# By hand.
[[machine.pair]]
src = { type = "xfs" }

[[machine.pair.choice]]
# Why: see the ticket.
variant = "mmap:8M"

# And the end.
"#;

    fn side(fs_type: &str, mount_point: Option<&str>) -> FileSystem {
        FileSystem {
            fs_type: Some(fs_type.to_owned()),
            mount_point: mount_point.map(str::to_owned),
            ..FileSystem::default()
        }
    }

    fn films(variant: &str) -> PairChoices {
        let choice = Choice { variant: variant.to_owned(), ..Choice::default() };
        let lines = vec![Line { choice, ..Line::default() }];
        PairChoices {
            src: side("ext4", Some("/films")),
            same: Some(true),
            lines,
            ..PairChoices::default()
        }
    }

    fn check(change: impl FnOnce(&mut Profile), expected: &str) {
        let before = Profile::parse(BEFORE).expect("parsed").profile;
        let mut after = before.clone();
        change(&mut after);
        let text = edited(BEFORE, &before, &after);
        assert_eq!(text, expected);
        assert_eq!(Profile::parse(&text).expect("parsed").profile, after);
    }

    fn machine(id: &str) -> Machine {
        Machine { id: Some(id.to_owned()), ..Machine::default() }
    }

    #[test]
    fn a_new_measurement_replaces_the_old_one_and_keeps_the_comment_above_it() {
        let (head, rest) =
            BEFORE.split_once("variant = \"splice\"   # as fast as anything\n").unwrap();
        let head = head.replace("same   =   true", "same = true");
        let expected = format!("{head}variant = \"sendfile\"\n{rest}");
        check(|profile| profile.enter(&machine("a"), films("sendfile")), &expected);
    }

    #[test]
    fn a_new_pair_is_first_and_a_new_machine_before_all_others() {
        let pair = PairChoices { src: side("btrfs", None), ..films("sendfile") };
        let text = "\n[[machine.pair]]\nsrc = { type = \"btrfs\" }\nsame = true\n\n\
            [[machine.pair.choice]]\nvariant = \"sendfile\"\n";
        let (head, rest) = BEFORE.split_once("\n# The disk with").unwrap();
        check(
            |profile| profile.enter(&machine("a"), pair.clone()),
            &format!("{head}{text}\n# The disk with{rest}"),
        );
        let (head, rest) = BEFORE.split_once("\n# The old server").unwrap();
        check(
            |profile| profile.enter(&machine("b"), pair.clone()),
            &format!("{head}\n[[machine]]\nid = \"b\"\n{text}\n# The old server{rest}"),
        );
    }

    #[test]
    fn a_forgotten_pair_is_removed_with_its_comments() {
        let (head, rest) = BEFORE.split_once("\n# The disk with").unwrap();
        let (_, rest) = rest.split_once("\n# By hand.").unwrap();
        let expected = format!("{head}\n# By hand.{rest}");
        check(|profile| drop(profile.machines[0].pairs.remove(0)), &expected);
    }

    #[test]
    fn an_unusual_layout_is_replaced() {
        let text = "version = 1\nmachine = [{ id = \"a\", pair = [{ same = true }] }]\n";
        let before = Profile::parse(text).expect("parsed").profile;
        let mut after = before.clone();
        after.enter(&machine("a"), films("sendfile"));
        assert_eq!(edited(text, &before, &after), after.to_toml());
    }
}
