//! What is copied, how, and how it is attacked: the table.

/// Which operands the copy has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `-T src dst`.
    Exact,
    /// `first src/. dst`.
    Into,
    /// `--parents first src/a src/b src/a/c/f0 dst`.
    Parents,
}

/// What stands at the destination before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    /// Nothing, or an empty directory where the shape needs one.
    Fresh,
    /// A tree with the same names.
    Existing,
}

/// Which sides of the copy the attacker reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Src,
    Dst,
    Both,
}

/// Whose the symbolic links are that are put in the place of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Root,
    Other,
}

/// How a link gets into the place of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tactic {
    /// Both change places at one stroke.
    Exchange,
    /// The entry is moved away first, so that for an instant nothing is there.
    Replace,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Mode {
    pub(crate) shape: Shape,
    pub(crate) before: Before,
    pub(crate) args: &'static [&'static str],
    pub(crate) sources: Sources,
}

/// What is peculiar about the sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sources {
    /// Nothing.
    Plain,
    /// Links among them are followed, as the options ask, wherever they lead.
    Followed,
    /// Links are followed, and fifos and devices would be read from, so there are none.
    FollowedFiles,
    /// Links are followed, and what they lead to gets one more name, so that only an attack on the
    /// destination can fail.
    Linked,
    /// The names of the sources have to be absolute.
    Absolute,
}

/// One attack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attack {
    pub(crate) side: Side,
    pub(crate) owner: Owner,
    pub(crate) tactic: Tactic,
}

impl Mode {
    /// The attacks that must not succeed. A link of root's that stood in the destination before is
    /// written through, as by GNU cp; without a first operand nobody can tell when the run began.
    pub(crate) fn attacks(&self) -> Vec<Attack> {
        let mut attacks = Vec::new();
        let sides = match self.sources {
            Sources::Linked => &[Side::Dst][..],
            _ => &[Side::Dst, Side::Both, Side::Src],
        };
        for &side in sides {
            for owner in [Owner::Root, Owner::Other] {
                for tactic in [Tactic::Exchange, Tactic::Replace] {
                    let stood = self.before == Before::Existing && self.shape == Shape::Exact;
                    if !(stood && owner == Owner::Root) {
                        attacks.push(Attack { side, owner, tactic });
                    }
                }
            }
        }
        attacks
    }

    /// Whether `attack` has to wait until the run has begun.
    pub(crate) fn waits(&self, attack: Attack) -> bool {
        self.before == Before::Existing && attack.owner == Owner::Root
    }

    /// Whether what lies outside may be read: links are followed because the user asked for it.
    pub(crate) fn may_read_outside(&self) -> bool {
        // With --parents the operands themselves have directories in their names.
        self.shape == Shape::Parents
            || matches!(self.sources, Sources::Followed | Sources::FollowedFiles)
    }
}

const fn row(
    shape: Shape,
    before: Before,
    args: &'static [&'static str],
    sources: Sources,
) -> Mode {
    Mode { shape, before, args, sources }
}

use Before::{Existing, Fresh};
use Shape::{Exact, Into, Parents};
use Sources::{Absolute, Followed, FollowedFiles, Linked, Plain};

pub(crate) const MODES: &[Mode] = &[
    row(Exact, Fresh, &["-a"], Plain),
    row(Exact, Fresh, &["-r"], Plain),
    row(Exact, Fresh, &["-rp"], Plain),
    row(Exact, Fresh, &["-a", "--sparse=always", "--reflink=never"], Plain),
    row(Exact, Fresh, &["-a", "--attributes-only"], Plain),
    row(Exact, Fresh, &["-rl"], Linked),
    row(Exact, Fresh, &["-rlP"], Plain),
    row(Exact, Fresh, &["-rs"], Absolute),
    row(Exact, Fresh, &["-rL"], Followed),
    row(Exact, Fresh, &["-R", "--copy-contents"], FollowedFiles),
    row(Exact, Existing, &["-a"], Plain),
    row(Exact, Existing, &["-r"], Plain),
    row(Into, Fresh, &["-a"], Plain),
    row(Into, Fresh, &["-r"], Plain),
    row(Into, Fresh, &["-rlP"], Plain),
    row(Into, Existing, &["-a"], Plain),
    row(Into, Existing, &["-r"], Plain),
    row(Into, Existing, &["-aH"], Plain),
    row(Into, Existing, &["-au"], Plain),
    row(Into, Existing, &["-an"], Plain),
    row(Into, Existing, &["-rf"], Plain),
    row(Into, Existing, &["-rb"], Plain),
    row(Into, Existing, &["-ab"], Plain),
    row(Into, Existing, &["-a", "--backup=numbered"], Plain),
    row(Into, Existing, &["-r", "--remove-destination"], Plain),
    row(Into, Existing, &["-a", "--remove-destination"], Plain),
    row(Into, Existing, &["-r", "--preserve=all"], Plain),
    row(Into, Existing, &["-a", "--attributes-only"], Plain),
    row(Into, Existing, &["-a", "--keep-directory-symlink"], Plain),
    row(Into, Existing, &["-a", "--sparse=always", "--reflink=never"], Plain),
    row(Into, Existing, &["-a", "--atomic"], Plain),
    row(Into, Existing, &["-rb", "--atomic"], Plain),
    row(Into, Existing, &["-rlf"], Linked),
    row(Into, Existing, &["-rlPf"], Plain),
    row(Into, Existing, &["-alf"], Plain),
    row(Into, Existing, &["-rsf"], Absolute),
    row(Into, Existing, &["-rL"], Followed),
    row(Into, Existing, &["-R", "--copy-contents"], FollowedFiles),
    row(Parents, Fresh, &["-a"], Plain),
    row(Parents, Fresh, &["-r"], Plain),
    row(Parents, Existing, &["-a"], Plain),
    row(Parents, Existing, &["-r"], Plain),
];
