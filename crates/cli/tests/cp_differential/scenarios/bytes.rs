//! Holes, clones and what `--debug` has no part in.

use super::Table;

pub(crate) const TABLES: &[Table] = &[Table {
    trees: &["hole~1M; some~1M@0,64K,512K; end~1M@1020K; odd~1000001@4096; full=data; empty=; \
              b=older\\scontent; big~8M@3M; tail~70000@0"],
    lines: &[
        "hole c", "some c", "end c", "odd c", "big c", "tail c", "empty c",
        "--sparse=auto some c", "--sparse=always some c", "--sparse=always odd c",
        "--sparse=always hole c", "--sparse=always tail c", "--sparse=always full c",
        "--sparse=always empty c", "--sparse=always big c", "--sparse=never full c",
        "--sparse=never empty c", "--sparse=never some c", "--sparse=never hole c",
        "--sparse=never tail c", "some b", "hole b", "--sparse=always some b",
        "--sparse=always hole b", "--sparse=never some b", "empty b", "full some", "empty some",
        "--reflink=auto some c", "--reflink=never some c", "--reflink=never --sparse=always some c",
        "--reflink=auto --sparse=never some c", "--reflink=always full c",
        "--reflink=always full b", "--reflink full c", "--reflink=always empty c",
        "--reflink=always some c", "--reflink=always -n full b", "--reflink=always -l full c",
        "--reflink=always --attributes-only full c", "--attributes-only some c",
        "--attributes-only some b", "/dev/null c", "/dev/null b", "-b /dev/null b",
        "--attributes-only /dev/null c", "full /dev/null", "full /dev/full", "-f full /dev/full",
        "full /dev/stdout", "/dev/stdin c <hello\\n", "/dev/stdin b <hello\\n",
        "-v /dev/stdin c <x", "full - <x", "- c <x", "/dev/fd/0 c <fd", "/proc/self/comm c",
        "/proc/sys/kernel/ostype c", "--sparse=always /proc/sys/kernel/ostype c",
        "-r /proc/sys/kernel/ostype c", "/sys/kernel/notes c", "-p full c", "-p some c",
        "-r --copy-contents full c", "--debug=1 full c", "-a hole some c", "-a hole some c/",
        "-f full /proc/nope", "full /proc/nope/x", "/dev/tty c", "-r /dev/null c", "-a /dev/null c",
        "-r /dev/null b", "-r /dev/null --attributes-only c", "-l /dev/null c", "-s /dev/null c",
    ],
}];
