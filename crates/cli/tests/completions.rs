//! The completion scripts in the shells that they are for, where these are found.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use testfs::{fixture, skip, test_name};

/// Runs the shell on a script, in `dir`. `None` after a skip where there is no such shell.
fn run(shell: &[&str], dir: &Path, script: &str) -> Option<String> {
    let mut command = Command::new(shell[0]);
    command.args(&shell[1..]).arg(script).current_dir(dir).env("HOME", dir).env("LC_ALL", "C");
    let path = std::env::var("PATH").expect("a path");
    command.env("PATH", format!("{}:{path}", dir.join(BIN).display()));
    let Ok(output) = command.output() else {
        skip(&test_name(), &format!("there is no {} here", shell[0]));
        return None;
    };
    let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && complaints.is_empty(), "{script}\n{complaints}");
    Some(String::from_utf8(output.stdout).expect("text"))
}

/// The directory with the program, under the names by which it is called.
const BIN: &str = ".bin";

/// A directory with some files, and the script for `shell` in it.
fn directory(called: &str, shell: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("created");
    // Two run directories, and a directory that is none.
    fixture::add(
        "some\\sfile=; something=; patterns=; somewhere/; runs/first/samples.csv=; \
         kept/samples.csv=; runs/no/x=",
        &dir,
    );
    let own = "name = \"own\"\n[[part]]\nname = \"first\"\n[[part]]\nname = \"second\"\n";
    std::fs::write(dir.path().join("own.toml"), own).expect("written");
    std::fs::create_dir(dir.path().join(BIN)).expect("created");
    for name in CALLED {
        symlink(env!("CARGO_BIN_EXE_haulage"), dir.path().join(BIN).join(name)).expect("linked");
    }
    let mut command = testfs::command(dir.path().join(BIN).join(called));
    match called {
        "haulage" => command.args(["completions", shell]),
        _ => command.arg(format!("--generate={shell}")),
    };
    let output = command.output();
    let output = output.expect("haulage runs");
    assert!(output.status.success());
    std::fs::write(dir.path().join("script"), output.stdout).expect("written");
    dir
}

/// The names by which the program is called.
const CALLED: [&str; 2] = ["haulage", "cp"];

/// A line as typed, parted by `|` as bash parts words, and what is offered.
const BASH: &[(&str, &str)] = &[
    ("haulage|cp", "cp"),
    (
        "haulage|",
        "race bench certify compare report tune cp engines doctor man completions --help --version",
    ),
    ("haulage|race|--sta", "--state"),
    ("haulage|race|--state|=|w", "warm"),
    ("haulage|race|--state|c", "cold"),
    ("haulage|race|--engines|=|copy", "copy_file_range"),
    ("haulage|race|--engines|sendfile,spl", "sendfile,splice"),
    ("haulage|race|--rounds|", ""),
    ("haulage|race|--csv|=|pat", "patterns"),
    ("haulage|race|pat", "patterns"),
    ("haulage|bench|clo", "closson-2007"),
    ("haulage|bench|pat", "patterns"),
    ("haulage|bench|--on|some", "somewhere"),
    ("haulage|bench|engines|--part|", "warm cold durable overwritten"),
    ("haulage|bench|engines|--part|=|du", "durable"),
    ("haulage|bench|scaling|--part|wo", "workers"),
    ("haulage|bench|--part|overw", "overwritten"),
    ("haulage|bench|own.toml|--part|", "first second"),
    ("haulage|bench|--resume|", "kept runs/first"),
    ("haulage|compare|", "kept runs/first"),
    ("haulage|compare|kept|ru", "runs/first"),
    ("haulage|compare|--fail-on|", "slower"),
    ("haulage|report|k", "kept"),
    ("haulage|report|pat", "patterns"),
    ("haulage|report|--svg|some", "somewhere"),
    ("haulage|tune|some", "somewhere"),
    ("haulage|certify|some", ""),
    ("haulage|doctor|some", "somewhere"),
    ("haulage|doctor|--j", "--json"),
    ("haulage|man|ce", "certify"),
    ("haulage|completions|", "bash zsh fish"),
    ("haulage|cp|--engine|copy", "copy_file_range"),
    ("haulage|cp|--spa", "--sparse"),
    ("haulage|cp|--sparse|=|a", "auto always"),
    ("haulage|cp|--sparse|=", "never auto always"),
    ("haulage|cp|--sparse|n", "never"),
    ("haulage|cp|--reflink|n", ""),
    ("haulage|cp|--reflink|=|n", "never"),
    ("haulage|cp|--preserve|=|mode,t", "mode,timestamps"),
    ("haulage|cp|--no-preserve|l", "links"),
    ("haulage|cp|--exclude|=|s", ""),
    ("haulage|cp|--ignore-file|=|pat", "patterns"),
    ("haulage|cp|-t|some", "somewhere"),
    ("haulage|cp|--target-directory|=|some", "somewhere"),
    ("haulage|cp|-a|some", "some file something somewhere"),
    ("haulage|cp|--|pat", "patterns"),
    ("haulage|race|--state|=|s", ""),
    ("haulage|cp|--|--spa", ""),
    ("haulage|cp|--generate|=|", "man bash zsh fish"),
    ("cp|--no-ca", "--no-cache"),
    ("cp|--keep", "--keep-directory-symlink"),
    ("cp|-a|pat", "patterns"),
];

#[test]
fn bash_completes_options_words_and_files() {
    let dirs = CALLED.map(|called| directory(called, "bash"));
    for (line, due) in BASH {
        let words: Vec<_> = line.split('|').collect();
        let dir = &dirs[usize::from(words[0] == CALLED[1])];
        let last = words.len() - 1;
        let quoted: Vec<_> = words.iter().map(|word| format!("'{word}'")).collect();
        let script = format!(
            "source ./script; complete -p {} > registered\n\
             COMP_WORDS=({}); COMP_CWORD={last}\n\
             _haulage_{} '{}' '{}' '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            words[0],
            quoted.join(" "),
            words[0],
            words[0],
            words[last],
            words[last - 1],
        );
        let shell = ["bash", "--norc", "--noprofile", "-c"];
        let Some(offered) = run(&shell, dir.path(), &script) else { return };
        let mut offered: Vec<_> = offered.lines().filter(|line| !line.is_empty()).collect();
        let mut due: Vec<_> = match *due {
            "some file something somewhere" => vec!["some file", "something", "somewhere"],
            due => due.split_whitespace().collect(),
        };
        offered.sort_unstable();
        due.sort_unstable();
        assert_eq!(offered, due, "{line}");
    }
}

#[test]
fn fish_completes_options_words_and_files() {
    let dirs = CALLED.map(|called| directory(called, "fish"));
    for (called, line, due) in [
        ("haulage", "haulage ce", "certify"),
        ("haulage", "haulage --ver", "--version"),
        ("haulage", "haulage race --state=c", "--state=cold"),
        ("haulage", "haulage race --engines sendfile,spl", "sendfile,splice"),
        ("haulage", "haulage bench clo", "closson-2007"),
        ("haulage", "haulage bench --resume ", "kept runs/first"),
        ("haulage", "haulage bench --part overw", "overwritten"),
        ("haulage", "haulage bench own.toml --part ", "first second"),
        ("haulage", "haulage report pat", "patterns"),
        ("haulage", "haulage tune some", "somewhere/"),
        ("haulage", "haulage man ce", "certify"),
        ("haulage", "haulage completions z", "zsh"),
        ("haulage", "haulage cp --spa", "--sparse"),
        ("haulage", "haulage cp --sparse=a", "--sparse=always --sparse=auto"),
        ("haulage", "haulage cp --preserve=mode,t", "--preserve=mode,timestamps"),
        ("haulage", "haulage cp --ignore-file pat", "patterns"),
        ("haulage", "haulage cp -t some", "somewhere/"),
        ("haulage", "haulage cp pat", "patterns"),
        ("haulage", "haulage cp some\\ f", "some file"),
        ("haulage", "haulage race --csv=~/pat", "--csv=~/patterns"),
        ("cp", "cp --no-ca", "--no-cache"),
        ("cp", "cp -a pat", "patterns"),
    ] {
        let dir = &dirs[usize::from(called == CALLED[1])];
        let script = format!("complete -e -c {called}; source ./script; complete -C '{line}'");
        let Some(offered) = run(&["fish", "--no-config", "-c"], dir.path(), &script) else {
            return;
        };
        let offered: Vec<_> = offered.lines().filter_map(|line| line.split('\t').next()).collect();
        assert_eq!(offered.join(" "), due, "{line}");
    }
}

#[test]
fn zsh_takes_the_script_and_completes_by_it() {
    let lines = [
        ("haulage", "haulage ce", "certify"),
        ("haulage", "haulage --ver", "--version"),
        ("haulage", "haulage race --state=c", "--state=cold"),
        ("haulage", "haulage race --engines=sendfile,spl", "--engines=sendfile,splice"),
        ("haulage", "haulage bench clo", "closson-2007"),
        ("haulage", "haulage bench --resume=ru", "--resume=runs/first"),
        ("haulage", "haulage bench --part overw", "overwritten"),
        ("haulage", "haulage bench own.toml --part se", "second"),
        ("haulage", "haulage report pat", "patterns"),
        ("haulage", "haulage tune somew", "somewhere/"),
        ("haulage", "haulage man ce", "certify"),
        ("haulage", "haulage completions z", "zsh"),
        ("haulage", "haulage cp --spa", "--sparse"),
        ("haulage", "haulage cp --preserve=mode,ti", "--preserve=mode,timestamps"),
        ("haulage", "haulage cp -t somew", "somewhere/"),
        ("haulage", "haulage cp pat", "patterns"),
        ("cp", "cp --no-ca", "--no-cache"),
        ("cp", "cp -a pat", "patterns"),
    ];
    for called in CALLED {
        let dir = directory(called, "zsh");
        let lines: Vec<_> = lines.iter().filter(|(of, _, _)| *of == called).collect();
        let typed: Vec<_> = lines.iter().map(|(_, line, _)| format!("'{line}'")).collect();
        // A terminal of its own, in which a tab is pressed after each line, and then a key that writes the line down.
        let script = format!(
            "zmodload zsh/zpty; zpty z zsh -f -i\n\
             zpty -w z 'PROMPT= RPROMPT=; autoload -Uz compinit; compinit -u -D; source ./script'\n\
             zpty -w z 'note() {{ print -r -- $BUFFER > ./noted; BUFFER= }}'\n\
             zpty -w z 'zle -N note; bindkey ^X note; touch ./ready'\n\
             for i in {{1..3000}}; do [[ -e ready ]] && break; sleep 0.01; done\n\
             for line in {}; do\n\
             zpty -n -w z \"$line\"$'\\t\\x18'\n\
             for i in {{1..3000}}; do [[ -s noted ]] && break; sleep 0.01; done\n\
             cat noted; rm noted; done; zpty -d z",
            typed.join(" ")
        );
        let Some(noted) = run(&["zsh", "-f", "-c"], dir.path(), &script) else { return };
        assert_eq!(noted.lines().count(), lines.len(), "{noted}");
        for (noted, (_, line, due)) in noted.lines().zip(lines) {
            let last = noted.trim_end().rsplit(' ').next();
            assert_eq!(last, Some(*due), "{line}");
        }
    }
}
