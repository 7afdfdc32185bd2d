//! Directories: what is followed, linked, re-created and refused.

use super::Table;

/// A tree with something of everything that an ordinary user can make.
const SOURCE: &str = "s/a=1; s/b==s/a; s/d/c==s/a; s/d/f=2 mode=600; s/d/e/ mode=750; s/l->a; \
                      s/up->../outside; s/dl->d; s/gone->nothing; s/p|; s/lh==s/l; outside/o=o; \
                      ls->s; t/; h~1M@64K; s/d/h2==h";

pub(crate) const TABLES: &[Table] = &[
    Table {
        trees: &[SOURCE],
        lines: &[
            "-r s new", "-R s new", "-rv s new", "-a s new", "-av s new", "-p -r s new",
            "-r s t", "-a s t", "-a s/. t", "-a s/ t", "-rT s t", "-r ls t", "-r ls/ t",
            "-rH ls t", "-rL ls t", "-rL s t", "-rLv s t", "-rP s t", "-aH ls t", "-aL ls t",
            "-d -r s t", "-r --preserve=links s t", "-rH --preserve=links s ls t",
            "-rL --preserve=links s t", "-a --no-preserve=links s t", "-rl s t", "-rlv s t",
            "-al s t", "-rlL s t", "-rlH ls t", "-rs {}/s t", "-rsv {}/s t", "-as {}/s t",
            "-rs s t", "-rs s new", "-r --attributes-only s t", "-a --attributes-only s t",
            "-rx s t", "-ax s t", "-r s s", "-rv s s", "-r s s/new", "-r s s/d", "-rv s/d s",
            "-r s/. s/new", "-r . t", "-r . t/x", "-r .. t", "-rT . t/x", "-rL . t",
            "-r s s t", "-r s s/. t", "-r s t && -r s t", "-a s t && -a s t",
            "-a s t && -au s t", "-au s t && -auv s t", "-rn s t && -rnv s t",
            "-rf s t && -rf s t", "-rl s t && -rl s t", "-al s t && -al s t",
            "-rs {}/s t && -rs {}/s t", "-rsf {}/s t && -rsf {}/s t",
            "-rb s t && -rb s t", "-a s t && -ab s t",
            "-r --remove-destination s t && -r --remove-destination s t",
            "-a --remove-destination s t && -a --remove-destination s t",
            "s t", "s/a s t", "-v s s/d t", "-l s t", "-s s t", "-rl s/p t", "-r s/p t", "-r s/p new",
            "-rv s/p t", "-r s/p s/a", "-r --remove-destination s/a s/p",
            "-rb s/p s/a", "-a s/a s/b s/d/c t", "-d s/a s/b s/d/c t", "-p s/a s/b t",
            "--preserve=links s/a s/b s/l t", "-P s/l s/lh t", "-dP s/l s/lh t", "-d s/l s/lh t",
            "-a s/l s/lh t", "-a s/a s/l t", "-aL s/a s/l t", "--preserve=links s/a s/l s/b t",
            "-dH s/a s/l t", "--preserve=links s/a s/b s/d/c t && --preserve=links s/a s/b t",
            "-a s/gone t", "s/gone t", "-L s/gone t", "-rL s/gone t", "-H s/gone t",
            "-r s nosuch t", "-rv nosuch s/d t", "-r s t/x/y", "-r s t/",
            "-r s new/", "-a s new/", "-r s/a new/", "-r s new//", "-rT s new/", "-r s nodir/new/",
            "-r --parents s/d t", "-a --parents s/d/e t", "-a --parents s/d/e s/d/f t",
            "-r s/d s/d/e", "-r s/d s/dl", "-r s/d s/dl/e", "-r ls s", "-rH ls s", "-r s ls",
            "-rT s ls", "-r --debug s/d/e t",
        ],
    },
    Table {
        // Where the destination's directory is a link.
        trees: &["s/d/f=1; s/d/g=2; t/s/; t/s/d->../../out; out/g=old; lt->t"],
        lines: &[
            "-r s t", "-a s t", "-rf s t", "-rb s t", "-rT s t/s", "-rT s lt", "-r s lt",
            "-r s lt/", "-r --remove-destination s t", "-rv s/d t/s", "-rL s t", "-rn s t",
        ],
    },
    Table {
        // Without permission to read, list, enter or write.
        trees: &["s/no=x mode=0; s/nolist/f=x; s/nolist/ mode=311; s/noenter/f=x; \
                  s/noenter/ mode=644; s/none/ mode=0; s/ro/f=x mode=444; s/ro/ mode=555; \
                  s/yes=y; t/; u/s/ro/ mode=555; u/s/yes=old mode=400; w/ mode=555; \
                  x/s/ mode=333"],
        lines: &[
            "-r s t", "-a s t", "-rv s t", "-p -r s t", "-rl s t", "-r s u", "-rf s u",
            "-r --remove-destination s u", "-rb s u", "-r s w", "-a s w", "-r s x",
            "s/no t", "-r s/ro t", "-a s/ro t", "-a s/ro t && -a s/ro t", "s/yes w", "s/yes w/new",
            "-f s/yes u/s/yes", "s/yes u/s/yes", "-b s/yes u/s/yes", "-n s/yes u/s/yes",
            "-i s/yes u/s/yes <y\\n", "-if s/yes u/s/yes <y\\n", "-i s/yes u/s/yes <n\\n",
            "-iv s/yes u/s/ro/new <y\\n", "-r s/none s/yes t", "-r s/nolist s/noenter t",
            "-r s/nolist/f t", "s/noenter/f t", "s/none/f t", "s/yes s/none/f", "s/yes s/noenter/f",
            "UMASK=777 -r s/ro t", "UMASK=077 -r s/ro s/yes t", "UMASK=277 -a s/ro t",
            "UMASK=777 s/yes t", "-u s/yes s/none/f", "-n s/yes s/none/f", "-t s/none s/yes",
            "-t s/noenter s/yes", "--attributes-only s/no t", "-l s/no t", "-s {}/s/no t",
            "-f s/no u/s/yes", "--remove-destination s/no u/s/yes",
        ],
    },
];
