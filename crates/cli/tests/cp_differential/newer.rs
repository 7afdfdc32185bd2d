//! What GNU cp does since releases later than 9.1, which is what many machines still have: outcomes
//! as seen with 9.10, expected of ours anywhere and of a GNU cp that is new enough.

use std::path::Path;

use super::fixture;
use super::run::{Case, Outcome};

/// A case and all that is expected of it.
pub(crate) struct Newer {
    pub(crate) tree: &'static str,
    pub(crate) line: &'static str,
    pub(crate) status: i32,
    /// A line that begins with `copy offload: ` stands for any such.
    pub(crate) stdout: &'static str,
    pub(crate) stderr: &'static str,
    /// Facts of the tree afterwards, in the language of [`fixture`].
    pub(crate) after: &'static str,
}

impl Newer {
    pub(crate) fn case(&self) -> Case {
        Case { tree: self.tree.to_owned(), line: self.line.to_owned() }
    }

    /// What of `outcome` is not as expected.
    pub(crate) fn faults(&self, outcome: &Outcome) -> Vec<String> {
        let [said] = &outcome.said[..] else { panic!("{}: one command each", self.line) };
        let mut faults = Vec::new();
        let mut compare = |what: &str, expected: String, found: String| {
            if expected != found {
                faults.push(format!("{what}: {found}\n  expected: {expected}"));
            }
        };
        compare("status", format!("{:?}", Some(self.status)), format!("{:?}", said.status));
        compare("stdout", self.stdout.to_owned(), without_how(&said.stdout));
        compare("stderr", self.stderr.to_owned(), String::from_utf8_lossy(&said.stderr).into());
        faults.extend(fixture::unmet(self.after, &outcome.tree, Path::new("/nowhere")));
        faults
    }
}

/// How a file was copied depends on the file system.
fn without_how(stdout: &[u8]) -> String {
    let text = String::from_utf8_lossy(stdout);
    let lines = text
        .split_inclusive('\n')
        .map(|line| if line.starts_with("copy offload: ") { "copy offload: \n" } else { line });
    lines.collect()
}

/// `a` is older than `n` and newer than `o`.
const AGES: &str = "a=new t=2000; o=old t=1000; n=newer t=3000; d/x=1; dl->d";

/// What follows a bad argument of `--update`.
macro_rules! valid_updates {
    () => {
        "Valid arguments are:\n  - 'all'\n  - 'none'\n  - 'none-fail'\n  - 'older'\nTry 'cp --help' \
         for more information.\n"
    };
}

/// Seen with GNU cp 9.10.
pub(crate) static SEEN: &[Newer] = &[
    Newer {
        tree: AGES,
        line: "--update=none a o",
        status: 0,
        stdout: "",
        stderr: "",
        after: "o=old",
    },
    Newer {
        tree: AGES,
        line: "--update=none -v a o",
        status: 0,
        stdout: "",
        stderr: "",
        after: "o=old",
    },
    Newer {
        tree: AGES,
        line: "--update=none --debug a o",
        status: 0,
        stdout: "skipped 'o'\n",
        stderr: "",
        after: "o=old",
    },
    Newer {
        tree: AGES,
        line: "-n --debug a o",
        status: 0,
        stdout: "skipped 'o'\n",
        stderr: "",
        after: "o=old",
    },
    Newer {
        tree: AGES,
        line: "--update=none a c",
        status: 0,
        stdout: "",
        stderr: "",
        after: "c=new",
    },
    Newer {
        tree: AGES,
        line: "--update=none-fail a o",
        status: 1,
        stdout: "",
        stderr: "cp: not replacing 'o'\n",
        after: "o=old",
    },
    Newer {
        tree: AGES,
        line: "--update=none-fail a c",
        status: 0,
        stdout: "",
        stderr: "",
        after: "c=new",
    },
    Newer {
        tree: AGES,
        line: "--update=none-fail a o c d",
        status: 1,
        stdout: "",
        stderr: "cp: cannot stat 'c': No such file or directory\n",
        after: "d/a=new; d/o=old",
    },
    Newer {
        tree: AGES,
        line: "--update=all a n",
        status: 0,
        stdout: "",
        stderr: "",
        after: "n=new",
    },
    Newer {
        tree: AGES,
        line: "-u --debug a n",
        status: 0,
        stdout: "skipped 'n'\n",
        stderr: "",
        after: "n=newer",
    },
    Newer {
        tree: AGES,
        line: "--update=older --debug a n",
        status: 0,
        stdout: "skipped 'n'\n",
        stderr: "",
        after: "n=newer",
    },
    Newer {
        tree: AGES,
        line: "--update=older -v a o",
        status: 0,
        stdout: "'a' -> 'o'\n",
        stderr: "",
        after: "o=new",
    },
    Newer {
        tree: AGES,
        line: "--update=none --update=older a o",
        status: 0,
        stdout: "",
        stderr: "",
        after: "o=new",
    },
    Newer {
        tree: AGES,
        line: "-i --update=older a n <y\\n",
        status: 0,
        stdout: "",
        stderr: "",
        after: "n=newer",
    },
    Newer {
        tree: AGES,
        line: "-i --update=all a n <y\\n",
        status: 0,
        stdout: "",
        stderr: "cp: overwrite 'n'? ",
        after: "n=new",
    },
    Newer {
        tree: AGES,
        line: "-i --update=none a o <y\\n",
        status: 0,
        stdout: "",
        stderr: "",
        after: "o=old",
    },
    Newer {
        tree: AGES,
        line: "-i --update=none-fail a o <y\\n",
        status: 1,
        stdout: "",
        stderr: "cp: not replacing 'o'\n",
        after: "o=old",
    },
    Newer {
        tree: AGES,
        line: "-f --update=none a o",
        status: 0,
        stdout: "",
        stderr: "",
        after: "o=old",
    },
    Newer {
        tree: AGES,
        line: "-n --update=all a o",
        status: 0,
        stdout: "",
        stderr: "",
        after: "o=old",
    },
    Newer {
        tree: AGES,
        line: "-n --update=none-fail a o",
        status: 0,
        stdout: "",
        stderr: "",
        after: "o=old",
    },
    Newer {
        tree: AGES,
        line: "-i --debug a o <n\\n",
        status: 1,
        stdout: "skipped 'o'\n",
        stderr: "cp: overwrite 'o'? ",
        after: "o=old",
    },
    Newer {
        tree: AGES,
        line: "-iv a o <n\\n",
        status: 1,
        stdout: "",
        stderr: "cp: overwrite 'o'? ",
        after: "o=old",
    },
    Newer {
        tree: AGES,
        line: "-i a o",
        status: 1,
        stdout: "",
        stderr: "cp: overwrite 'o'? ",
        after: "o=old",
    },
    Newer {
        tree: AGES,
        line: "--update=zzz a o",
        status: 1,
        stdout: "",
        stderr: concat!("cp: invalid argument 'zzz' for '--update'\n", valid_updates!()),
        after: "o=old",
    },
    Newer {
        tree: AGES,
        line: "--update=non a o",
        status: 1,
        stdout: "",
        stderr: concat!("cp: ambiguous argument 'non' for '--update'\n", valid_updates!()),
        after: "o=old",
    },
    Newer {
        tree: AGES,
        line: "--update= a o",
        status: 1,
        stdout: "",
        stderr: concat!("cp: ambiguous argument '' for '--update'\n", valid_updates!()),
        after: "o=old",
    },
    Newer {
        tree: AGES,
        line: "-b --update=none a o",
        status: 1,
        stdout: "",
        stderr: "cp: --backup is mutually exclusive with -n or --update=none-fail\nTry 'cp --help' for more information.\n",
        after: "o=old",
    },
    Newer {
        tree: AGES,
        line: "-b --update=none-fail a o",
        status: 1,
        stdout: "",
        stderr: "cp: --backup is mutually exclusive with -n or --update=none-fail\nTry 'cp --help' for more information.\n",
        after: "o=old",
    },
    Newer {
        tree: AGES,
        line: "-b --update=none --update=all a o",
        status: 0,
        stdout: "",
        stderr: "",
        after: "o=new; o~=old",
    },
    Newer {
        tree: AGES,
        line: "-nb a o",
        status: 1,
        stdout: "",
        stderr: "cp: --backup is mutually exclusive with -n or --update=none-fail\nTry 'cp --help' for more information.\n",
        after: "o=old",
    },
    Newer {
        tree: AGES,
        line: "--debug a c",
        status: 0,
        stdout: "'a' -> 'c'\ncopy offload: \n",
        stderr: "",
        after: "c=new",
    },
    Newer {
        tree: AGES,
        line: "--debug -l a c",
        status: 0,
        stdout: "'a' -> 'c'\n",
        stderr: "",
        after: "c=new",
    },
    Newer {
        tree: AGES,
        line: "--debug -s a c",
        status: 0,
        stdout: "'a' -> 'c'\n",
        stderr: "",
        after: "c->a",
    },
    Newer {
        tree: AGES,
        line: "--debug -r d c",
        status: 0,
        stdout: "'d' -> 'c'\n'd/x' -> 'c/x'\ncopy offload: \n",
        stderr: "",
        after: "c/; c/x=1",
    },
    Newer {
        tree: AGES,
        line: "--debug --attributes-only a c",
        status: 0,
        stdout: "'a' -> 'c'\n",
        stderr: "",
        after: "c=",
    },
    Newer {
        tree: AGES,
        line: "--debug=1 a c",
        status: 1,
        stdout: "",
        stderr: "cp: option '--debug' doesn't allow an argument\nTry 'cp --help' for more information.\n",
        after: "!c",
    },
    Newer {
        tree: AGES,
        line: "--de a c",
        status: 1,
        stdout: "",
        stderr: "cp: option '--de' is ambiguous; possibilities: '--debug' '--dereference'\nTry 'cp --help' for more information.\n",
        after: "!c",
    },
    Newer {
        tree: AGES,
        line: "--debu a c",
        status: 0,
        stdout: "'a' -> 'c'\ncopy offload: \n",
        stderr: "",
        after: "c=new",
    },
    Newer {
        tree: AGES,
        line: "--keep-directory-symlink=1 a c",
        status: 1,
        stdout: "",
        stderr: "cp: option '--keep-directory-symlink' doesn't allow an argument\nTry 'cp --help' for more information.\n",
        after: "!c",
    },
    Newer {
        tree: AGES,
        line: "--reflink=never --debug a c",
        status: 0,
        stdout: "'a' -> 'c'\ncopy offload: \n",
        stderr: "",
        after: "c=new",
    },
    Newer {
        tree: AGES,
        line: "--sparse=never --debug a c",
        status: 0,
        stdout: "'a' -> 'c'\ncopy offload: \n",
        stderr: "",
        after: "c=new",
    },
    Newer {
        tree: AGES,
        line: "-n -i a o <n\\n",
        status: 1,
        stdout: "",
        stderr: "cp: overwrite 'o'? ",
        after: "o=old",
    },
    Newer {
        tree: "s/d/f=1; t/s/d->../../out; out/g=old",
        line: "-r s t",
        status: 1,
        stdout: "",
        stderr: "cp: cannot overwrite non-directory 't/s/d' with directory 's/d'\n",
        after: "t/",
    },
    Newer {
        tree: "s/d/f=1; t/s/d->../../out; out/g=old",
        line: "-r --keep-directory-symlink --remove-destination s t",
        status: 1,
        stdout: "",
        stderr: "cp: cannot overwrite non-directory 't/s/d' with directory 's/d'\n",
        after: "t/",
    },
    Newer {
        tree: "d/f=1; t/d=file",
        line: "-rb d t",
        status: 0,
        stdout: "",
        stderr: "",
        after: "t/d/; t/d/f=1; t/d~=file",
    },
    Newer {
        tree: "d/f=1; t/d=file",
        line: "-rbv d t",
        status: 0,
        stdout: "'d' -> 't/d'\n'd/f' -> 't/d/f'\n",
        stderr: "",
        after: "t/d/; t/d/f=1; t/d~=file",
    },
    Newer {
        tree: "d/f=1; t/d->nothing",
        line: "-rb d t",
        status: 0,
        stdout: "",
        stderr: "",
        after: "t/d/; t/d/f=1; t/d~->nothing",
    },
    Newer {
        tree: "d/f=1; e=file",
        line: "-rbT d e",
        status: 0,
        stdout: "",
        stderr: "",
        after: "e/; e/f=1; e~=file",
    },
    Newer {
        tree: "d/f=1; t/d->../u; u/",
        line: "-rb d t",
        status: 0,
        stdout: "",
        stderr: "",
        after: "t/d/; t/d/f=1; t/d~->../u",
    },
    Newer {
        tree: "d/f=1; t/d=file",
        line: "-r --backup=t d t",
        status: 0,
        stdout: "",
        stderr: "",
        after: "t/d/; t/d.~1~=file; t/d/f=1",
    },
    Newer {
        tree: "e=file; t/e/",
        line: "-r e t",
        status: 1,
        stdout: "",
        stderr: "cp: cannot overwrite directory 't/e' with non-directory 'e'\n",
        after: "t/",
    },
    Newer {
        tree: "e=file; t/",
        line: "-T e t",
        status: 1,
        stdout: "",
        stderr: "cp: cannot overwrite directory 't' with non-directory 'e'\n",
        after: "t/",
    },
    Newer {
        tree: "it's=file; t/",
        line: "-T it's t",
        status: 1,
        stdout: "",
        stderr: "cp: cannot overwrite directory 't' with non-directory \"it's\"\n",
        after: "t/",
    },
    Newer {
        tree: "a=1 mode=600; so=old mode=4755",
        line: "--attributes-only --preserve=mode a so",
        status: 0,
        stdout: "",
        stderr: "",
        after: "so=old mode=600",
    },
    Newer {
        tree: "a=1 mode=600; so=old mode=4755",
        line: "-p a so",
        status: 0,
        stdout: "",
        stderr: "",
        after: "so=1 mode=600",
    },
    Newer {
        tree: "a=1 mode=600; so=old mode=6755",
        line: "--preserve=mode a so",
        status: 0,
        stdout: "",
        stderr: "",
        after: "so=1 mode=600",
    },
    Newer {
        tree: "d/ mode=700; g/ mode=2755",
        line: "-a d g",
        status: 0,
        stdout: "",
        stderr: "",
        after: "g/d/ mode=700",
    },
    Newer {
        tree: "d/ mode=700; g/ mode=2755",
        line: "-r d g",
        status: 0,
        stdout: "",
        stderr: "",
        after: "g/d/ mode=2700",
    },
    Newer {
        tree: "d/ mode=700; g/ mode=2755",
        line: "-r --no-preserve=mode d g",
        status: 0,
        stdout: "",
        stderr: "",
        after: "g/d/ mode=2755",
    },
    Newer {
        tree: "s/f=new; s/d/g=new; t/s/f=old; t/s/d/g=old",
        line: "-rv --backup=simple -S.o s/. t/s",
        status: 0,
        stdout: "'s/./f' -> 't/s/./f' (backup: 't/s/./f.o')\n's/./d/g' -> 't/s/./d/g' (backup: 't/s/./d/g.o')\n",
        stderr: "",
        after: "t/s/d/g=new; t/s/d/g.o=old; t/s/f=new; t/s/f.o=old",
    },
    Newer {
        tree: "a=new",
        line: "-T it's\\n",
        status: 1,
        stdout: "",
        stderr: "cp: missing destination file operand after 'it'\\''s'$'\\n'\nTry 'cp --help' for more information.\n",
        after: "",
    },
    Newer {
        tree: "x/a=new",
        line: "-v x/a it's\\n",
        status: 0,
        stdout: "'x/a' -> 'it'\\''s'$'\\n'\n",
        stderr: "",
        after: "it's\\n=new",
    },
    Newer {
        tree: "a=new; d/a=old; b->d",
        line: "--backup=simple -v a b",
        status: 0,
        stdout: "'a' -> 'b/a' (backup: 'b/a~')\n",
        stderr: "",
        after: "d/a=new; d/a~=old; !a~",
    },
    Newer {
        tree: "s/f=new; t/s/f=old",
        line: "-r --backup=simple s t",
        status: 0,
        stdout: "",
        stderr: "",
        after: "t/s/f=new; t/s/f~=old; !f~",
    },
];

/// Documented by GNU, yet GNU cp 9.10 refuses to write into what the link points to.
pub(crate) static DOCUMENTED: &[Newer] = &[
    Newer {
        tree: "s/d/f=1; t/s/d->../../out; out/g=old",
        line: "-r --keep-directory-symlink s t",
        status: 0,
        stdout: "",
        stderr: "",
        after: "t/s/d->../../out; out/f=1; out/g=old",
    },
    Newer {
        tree: "s/d/f=new; t/s/d->../../out; out/f=old",
        line: "-av --keep-directory-symlink s t",
        status: 0,
        stdout: "'s/d/f' -> 't/s/d/f'\n",
        stderr: "",
        after: "t/s/d->../../out; out/f=new",
    },
];
