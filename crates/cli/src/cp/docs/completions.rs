//! Completions for shells, written from the table of options.

use crate::cp::flags::flag::{Flag, Takes};
use crate::cp::flags::flags;
use crate::cp::values::Shell;

/// What is completed.
#[derive(Clone, Copy)]
pub(crate) enum Command<'c> {
    /// `cp`.
    Cp,
    /// `haulage`, with the names of its commands.
    Haulage(&'c [&'static str]),
}

/// The script that has `shell` complete `command`.
pub(crate) fn script(shell: Shell, command: Command<'_>) -> String {
    match shell {
        Shell::Bash => bash(command),
        Shell::Zsh => zsh(command),
        Shell::Fish => fish(command),
    }
}

/// What may stand for an option's argument.
enum Argument {
    None,
    File,
    Directory,
    Words(Vec<&'static str>),
    /// The same with commas between.
    List(Vec<&'static str>),
    Anything,
}

/// What the argument of `flag` is, and whether it may be left out.
fn argument(flag: &Flag) -> (Argument, bool) {
    let (metavar, optional) = match flag.takes {
        Takes::Nothing(_) => return (Argument::None, true),
        Takes::Required(metavar, _) => (metavar, false),
        Takes::Optional(metavar, _) => (metavar, true),
    };
    let words = flag.values.map(|values| values().concat());
    let argument = match (metavar, words) {
        ("LIST", Some(words)) => Argument::List(words),
        (_, Some(words)) => Argument::Words(words),
        ("FILE", None) => Argument::File,
        ("DIRECTORY", None) => Argument::Directory,
        (_, None) => Argument::Anything,
    };
    (argument, optional)
}

/// `-S` and `--suffix`, as they are typed.
fn spellings(flag: &Flag) -> Vec<String> {
    let shorts = flag.shorts.iter().map(|letter| format!("-{letter}"));
    shorts.chain(flag.longs.iter().map(|name| format!("--{name}"))).collect()
}

/// In single quotes, for all three shells: fish alone knows a backslash in them.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn bash(command: Command<'_>) -> String {
    let mut options = Vec::new();
    let (mut joined, mut apart) = (String::new(), String::new());
    for flag in flags() {
        let (argument, optional) = argument(flag);
        let takes = !matches!(argument, Argument::None);
        for name in spellings(flag) {
            // An argument that may be left out has to be joined.
            let needs = takes && !optional && name.starts_with("--");
            options.push(if needs { format!("{name}=") } else { name });
        }
        let action = match argument {
            Argument::None => continue,
            Argument::File => String::from("_haulage_cp_files -f"),
            Argument::Directory => String::from("_haulage_cp_files -d"),
            Argument::Words(words) => format!("_haulage_cp_words '{}'", words.join(" ")),
            Argument::List(words) => format!("_haulage_cp_list '{}'", words.join(" ")),
            Argument::Anything => String::from(":"),
        };
        let pattern = spellings(flag).join("|");
        let arm = format!("            {pattern}) {action}; return ;;\n");
        joined.push_str(&arm);
        if !optional {
            apart.push_str(&arm);
        }
    }
    let register = match command {
        Command::Cp => String::from("complete -F _haulage_cp cp\n"),
        Command::Haulage(names) => {
            include_str!("completions/haulage.bash").replace("@COMMANDS@", &names.join(" "))
        }
    };
    include_str!("completions/cp.bash")
        .replace("@OPTIONS@", &options.join(" "))
        .replace("@JOINED@", joined.trim_end())
        .replace("@APART@", apart.trim_end())
        + &register
}

fn zsh(command: Command<'_>) -> String {
    // In a description a bracket or a colon would end it.
    let escaped = |text: &str| text.replace('[', "\\[").replace(']', "\\]").replace(':', "\\:");
    let mut specs = String::new();
    for flag in flags() {
        let (argument, optional) = argument(flag);
        let metavar = match flag.takes {
            Takes::Nothing(_) => "",
            Takes::Required(metavar, _) | Takes::Optional(metavar, _) => metavar,
        };
        let action = match argument {
            Argument::None => None,
            Argument::File => Some(String::from("_files")),
            Argument::Directory => Some(String::from("_files -/")),
            Argument::Words(words) => Some(format!("({})", words.join(" "))),
            Argument::List(words) => Some(format!("_values -s , {metavar} {}", words.join(" "))),
            Argument::Anything => Some(String::from(" ")),
        };
        for name in spellings(flag) {
            let is_long = name.starts_with("--");
            let (mark, argument) = match (&action, optional) {
                (None, _) => ("", String::new()),
                // The letter of such an option takes none.
                (Some(_), true) if !is_long => ("", String::new()),
                (Some(action), true) => ("=-", format!("::{metavar}:{action}")),
                (Some(action), false) if is_long => ("=", format!(":{metavar}:{action}")),
                (Some(action), false) => ("+", format!(":{metavar}:{action}")),
            };
            let spec = format!("*{name}{mark}[{}]{argument}", escaped(flag.help));
            specs.push_str(&format!("        {} \\\n", quoted(&spec)));
        }
    }
    let function = include_str!("completions/cp.zsh").replace("@SPECS@\n", &specs);
    match command {
        Command::Cp => format!("#compdef cp\n{function}compdef _haulage_cp cp\n"),
        Command::Haulage(names) => {
            let register = include_str!("completions/haulage.zsh");
            let register = register.replace("@COMMANDS@", &names.join(" "));
            format!("#compdef haulage\n{function}{register}")
        }
    }
}

fn fish(command: Command<'_>) -> String {
    let (mut script, begin) = match command {
        Command::Cp => (String::new(), "complete -c cp"),
        Command::Haulage(names) => (
            format!("complete -c haulage -n __fish_use_subcommand -x -a '{}'\n", names.join(" ")),
            "complete -c haulage -n '__fish_seen_subcommand_from cp'",
        ),
    };
    for flag in flags() {
        let (argument, optional) = argument(flag);
        let shorts = flag.shorts.iter().map(|letter| format!(" -s {letter}"));
        let names: String =
            shorts.chain(flag.longs.iter().map(|name| format!(" -l {name}"))).collect();
        let action = match argument {
            Argument::None => String::new(),
            Argument::File => String::from(" -r -F"),
            Argument::Directory => String::from(" -x -a '(__fish_complete_directories)'"),
            Argument::Words(words) if optional => format!(" -a '{}'", words.join(" ")),
            Argument::Words(words) => format!(" -x -a '{}'", words.join(" ")),
            Argument::List(words) => {
                let needs = if optional { "" } else { " -x" };
                format!("{needs} -a '(__fish_append , {})'", words.join(" "))
            }
            Argument::Anything if optional => String::new(),
            Argument::Anything => String::from(" -x"),
        };
        let help = flag.help.replace('\\', "\\\\").replace('\'', "\\'");
        script.push_str(&format!("{begin}{names}{action} -d '{help}'\n"));
    }
    script
}
