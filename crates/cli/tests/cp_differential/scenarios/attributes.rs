//! Modes, owners, times, extended attributes and access control lists.

use super::Table;

const MODES: &str = "a=1 mode=600; x=1 mode=755; suid=1 mode=4755; sgid=1 mode=2755; \
                     sticky=1 mode=1644; none=1 mode=0; all=1 mode=777; ro=1 mode=444; \
                     d/ mode=700; sd/ mode=3775; sd/f=1 mode=666; t/; g/ mode=2755; \
                     o=old mode=640; so=old mode=4755; l->a; p| mode=600";

pub(crate) const TABLES: &[Table] = &[
    Table {
        trees: &[MODES],
        lines: &[
            "a x suid sgid sticky all ro t", "-p a x suid sgid sticky all ro t",
            "-a a x suid sgid sticky all ro t", "--preserve=mode a x suid sgid sticky all t",
            "--no-preserve=mode a x suid sgid sticky all ro t",
            "--no-preserve=all a x suid sgid sticky all ro t",
            "-p --no-preserve=mode a x suid t", "-a --no-preserve=mode suid sd t",
            "-p --no-preserve=mode,timestamps suid t", "-a --no-preserve=all suid sd t",
            "--preserve=timestamps a suid t", "--preserve=timestamps -r sd d t",
            "--preserve=ownership suid sgid t", "--preserve=ownership,mode suid sgid t",
            "--no-preserve=ownership -p suid t", "-p --preserve=links a t",
            "UMASK=077 a x suid all t", "UMASK=077 -p a x suid all t",
            "UMASK=0 a x suid all t", "UMASK=0 -r sd d t", "UMASK=077 -r sd d t",
            "UMASK=077 -a sd d t", "UMASK=777 a t", "UMASK=077 --no-preserve=mode all t",
            "UMASK=0 --no-preserve=mode a sd/f t", "UMASK=077 -r --no-preserve=mode sd d t",
            "UMASK=0 -r --no-preserve=mode sd d t", "UMASK=022 -r --preserve=mode sd d t",
            "UMASK=077 --parents sd/f t", "UMASK=077 -p --parents sd/f t",
            "UMASK=0 --parents --no-preserve=mode sd/f t", "-a --parents sd/f t",
            "--attributes-only -p suid t", "--attributes-only suid t", "--attributes-only suid o",
            "--attributes-only -p suid o", "--attributes-only --preserve=mode a so",
            "--attributes-only --preserve=timestamps a so",
            "a o", "-p a o", "-f a o", "suid o", "-p suid o", "a so", "-p a so", "suid so",
            "--no-preserve=mode a so", "--no-preserve=mode suid o", "--preserve=mode suid o",
            "--remove-destination suid o", "--remove-destination -p suid o", "-b suid so",
            "-r sd t", "-r sd g", "-a sd g", "-r d g", "-a d g", "-r --no-preserve=mode d g",
            "-r --no-preserve=mode sd t", "a g", "-p a g", "-a a g", "-r p t", "-a p t", "-rp p t",
            "UMASK=077 -r p t", "UMASK=077 -a p t", "--no-preserve=mode -r p t",
            "-a l t", "-rp l t", "-p l t", "-Pp l t", "-P --preserve=timestamps l t",
            "-r sd/. t", "-a sd/. t", "-aT sd t", "-rT d t", "-aT d t", "-rT sd new", "-aT sd new",
            "-rpT d t", "-r --preserve=mode d t && -r --preserve=mode d t",
            "--preserve ro t && --preserve ro t", "-a ro t && -a ro t", "-af ro t && -af ro t",
            "-l suid t", "-lp suid t", "-s {}/suid t", "-sp {}/suid t", "-up a o", "-nu -p a o",
        ],
    },
    Table {
        trees: &["a=1 t=5; b=old t=9; d/f=1 t=3; d/ t=4; l->a t=6; l2->nothing t=7; t/ t=8; \
                  e/d/f=old t=99; e/d/ t=1; p| t=11; before=1 t=-5; neg/ t=-3"],
        lines: &[
            "-p a b", "-p a t", "--preserve=timestamps a t", "-p a b t", "-pu a b", "-au a b",
            "-pu b a", "-rp d t", "-a d t", "-r d t", "-a d e", "-rp d e", "-r d e", "-ru d e",
            "-au d e", "-aT d e/d", "-a l l2 t", "-P -p l t", "-p l t", "-aL l t", "-a p t",
            "-rp p t", "-a before neg t", "--parents -p d/f t", "--parents -a d/f t",
            "-a --parents d t", "-a d/. t", "-al d t", "-lp a t", "-as {}/d t",
            "-p --attributes-only a b", "-p --no-preserve=timestamps a b",
            "-a --attributes-only d e", "-p b t && -pu a t/b && -pu b a",
            "--preserve=timestamps,mode d/f b", "-rp --no-preserve=timestamps d t",
        ],
    },
    Table {
        trees: &["a=1 user.one=1 user.two=2; d/f=1 user.f=f; d/ user.d=d; b=old user.one=x \
                  user.three=3; l->a; acl=1 acl mode=664; t/; e/d/ user.d=old; ro=1 user.r=r \
                  mode=400"],
        lines: &[
            "a t", "-p a t", "-a a t", "--preserve=xattr a t", "--preserve=all a t",
            "--preserve=all --no-preserve=xattr a t", "-a --no-preserve=xattr a t",
            "--preserve=xattr a b", "-a a b", "-p a b", "a b", "--preserve=xattr,mode a b",
            "-r d t", "-a d t", "-a d e", "-r --preserve=xattr d t", "-r --preserve=xattr d e",
            "-aT d t", "acl t", "-p acl t", "-a acl t", "--preserve=mode acl t",
            "--preserve=xattr acl t", "--no-preserve=mode acl t", "-p acl b", "-p a acl", "a acl",
            "--preserve=mode a acl", "-a l t", "-aL l t", "--preserve=xattr -P l t",
            "--attributes-only --preserve=xattr a b", "--attributes-only -a a b",
            "--attributes-only -p acl b", "-l a t", "--remove-destination a b",
            "--remove-destination -a a b", "--preserve=xattr ro t", "-a ro t",
            "--preserve=xattr --no-preserve=all a t", "-a --parents d/f t",
            "--preserve=xattr --parents d/f t",
        ],
    },
    Table {
        // Owners; an ordinary user makes these trees all his own.
        trees: &["a=1 own=1:2 mode=6755; d/f=1 own=3:4 mode=640; d/ own=5:6 mode=2755; \
                  l->a own=7:8; b=old own=9:9 mode=4755; t/; g/ own=0:7 mode=2777; \
                  p| own=1:1; e/d/f=old own=2:2"],
        lines: &[
            "a t", "-p a t", "-a a t", "--preserve=ownership a t", "--preserve=ownership,mode a t",
            "--preserve=mode a t", "-p --no-preserve=ownership a t", "a b", "-p a b",
            "--preserve=mode a b", "--preserve=ownership a b", "-a a b", "-b a b", "-bp a b",
            "-f a b", "--remove-destination a b", "--remove-destination -p a b",
            "-r d t", "-a d t", "-rp d t", "-r --preserve=ownership d t", "-a d e", "-r d e",
            "-a l t", "-P l t", "-Pp l t", "a g", "-p a g", "-r d g", "-a d g", "-rp --no-preserve=mode d g",
            "-a p t", "-r p t", "--parents d/f t", "-p --parents d/f t", "-a --parents d t",
            "--attributes-only -p a b", "--attributes-only --preserve=ownership a b",
            "-a --no-preserve=ownership d t",
        ],
    },
];
