//! Completions for shells, written from the tables of options.

use super::table::{Argument, OptionRow, Table};

/// A shell that has completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shell {
    /// GNU Bash.
    Bash,
    /// The Z shell.
    Zsh,
    /// The friendly interactive shell.
    Fish,
}

/// What is completed.
#[derive(Clone, Copy)]
pub(crate) enum Completed<'t> {
    /// A command that is a program of its own.
    Program(&'t Table),
    /// `haulage` with its commands.
    Haulage(&'t [Table]),
}

/// The script that has `shell` complete this.
pub(crate) fn script(shell: Shell, completed: Completed<'_>) -> String {
    match shell {
        Shell::Bash => bash(completed),
        Shell::Zsh => zsh(completed),
        Shell::Fish => fish(completed),
    }
}

fn tables(completed: Completed<'_>) -> &[Table] {
    match completed {
        Completed::Program(table) => std::slice::from_ref(table),
        Completed::Haulage(tables) => tables,
    }
}

fn names(tables: &[Table]) -> String {
    tables.iter().map(|table| table.name).collect::<Vec<_>>().join(" ")
}

/// The arguments of the shells' functions that complete parts: an experiment, its parts.
fn parts_of(experiments: &[(String, Vec<String>)]) -> String {
    let pair = |(name, parts): &(String, Vec<String>)| format!(" {name} \"{}\"", parts.join(" "));
    experiments.iter().map(pair).collect()
}

/// In single quotes, for all three shells: fish alone knows a backslash in them.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn bash(completed: Completed<'_>) -> String {
    let mut script = include_str!("completions/common.bash").to_owned();
    tables(completed).iter().for_each(|table| script.push_str(&bash_function(table)));
    script.push_str(&match completed {
        Completed::Program(Table { name, .. }) => {
            format!("complete -F _haulage_command_{name} {name}\n")
        }
        Completed::Haulage(tables) => {
            include_str!("completions/haulage.bash").replace("@COMMANDS@", &names(tables))
        }
    });
    script
}

fn bash_function(table: &Table) -> String {
    let mut options = Vec::new();
    let (mut joined, mut apart) = (String::new(), String::new());
    for row in &table.options {
        let takes = row.argument != Argument::None;
        for name in row.spellings() {
            // An argument that may be left out has to be joined, and the second of two is apart.
            let needs = takes && !row.optional && row.metavars.len() == 1 && name.starts_with("--");
            options.push(if needs { format!("{name}=") } else { name });
        }
        if takes {
            let pattern = row.spellings().join("|");
            let arm = format!("            {pattern}) {}; return ;;\n", bash_action(&row.argument));
            joined.push_str(&arm);
            if !row.optional {
                apart.push_str(&arm);
            }
        }
    }
    include_str!("completions/command.bash")
        .replace("@NAME@", table.name)
        .replace("@OPTIONS@", &options.join(" "))
        .replace("@OPERANDS@", &bash_action(&table.operands))
        .replace("@JOINED@", joined.trim_end())
        .replace("@APART@", apart.trim_end())
}

fn bash_action(argument: &Argument) -> String {
    match argument {
        Argument::None | Argument::Anything => String::from(":"),
        Argument::File => String::from("_haulage_files -f"),
        Argument::Directory => String::from("_haulage_files -d"),
        Argument::Run => String::from("_haulage_runs"),
        Argument::Words(words) => format!("_haulage_words '{}'", words.join(" ")),
        Argument::Part(experiments) => format!("_haulage_parts{}", parts_of(experiments)),
        Argument::WordsOrFile(words) => format!("_haulage_words_or_files '{}'", words.join(" ")),
        Argument::List(words) => format!("_haulage_list '{}'", words.join(" ")),
    }
}

fn zsh(completed: Completed<'_>) -> String {
    let functions: String = tables(completed).iter().map(zsh_function).collect();
    let common = include_str!("completions/common.zsh");
    match completed {
        Completed::Program(Table { name, .. }) => {
            let register = format!("compdef _haulage_command_{name} {name}\n");
            format!("#compdef {name}\n{common}{functions}\n{register}")
        }
        Completed::Haulage(tables) => {
            let register = include_str!("completions/haulage.zsh");
            let register = register.replace("@COMMANDS@", &names(tables));
            format!("#compdef haulage\n{common}{functions}{register}")
        }
    }
}

fn zsh_function(table: &Table) -> String {
    let mut specs: Vec<String> = table.options.iter().flat_map(zsh_specs).collect();
    if let Some(action) = zsh_action(&table.operands, "operand") {
        specs.push(format!("*:operand:{action}"));
    }
    let specs: String = specs.iter().map(|spec| format!(" \\\n        {}", quoted(spec))).collect();
    format!("\n_haulage_command_{}() {{\n    _arguments -s -S{specs}\n}}\n", table.name)
}

/// A specification for each spelling.
fn zsh_specs(row: &OptionRow) -> Vec<String> {
    // In a description a bracket or a colon would end it.
    let help = row.help.replace('[', "\\[").replace(']', "\\]").replace(':', "\\:");
    let arguments: String = row
        .metavars
        .iter()
        .filter_map(|name| Some(format!(":{name}:{}", zsh_action(&row.argument, name)?)))
        .collect();
    let spec = |name: String| {
        let is_long = name.starts_with("--");
        let (mark, arguments) = match (row.metavars.len(), row.optional) {
            (0, _) => ("", String::new()),
            // The letter of such an option takes none.
            (_, true) if !is_long => ("", String::new()),
            (_, true) => ("=-", format!(":{arguments}")),
            (1, false) if is_long => ("=", arguments.clone()),
            (1, false) => ("+", arguments.clone()),
            (_, false) => ("", arguments.clone()),
        };
        format!("*{name}{mark}[{help}]{arguments}")
    };
    row.spellings().into_iter().map(spec).collect()
}

fn zsh_action(argument: &Argument, metavar: &str) -> Option<String> {
    Some(match argument {
        Argument::None => return None,
        Argument::File => String::from("_files"),
        Argument::Directory => String::from("_files -/"),
        Argument::Run => String::from("_haulage_runs"),
        Argument::Words(words) => format!("({})", words.join(" ")),
        Argument::Part(experiments) => format!("{{_haulage_parts{}}}", parts_of(experiments)),
        Argument::WordsOrFile(words) => format!("{{compadd -- {}; _files}}", words.join(" ")),
        Argument::List(words) => format!("_values -s , {metavar} {}", words.join(" ")),
        Argument::Anything => String::from(" "),
    })
}

fn fish(completed: Completed<'_>) -> String {
    match completed {
        Completed::Program(table) => fish_lines(table, &format!("complete -c {}", table.name)),
        Completed::Haulage(tables) => {
            let mut script = include_str!("completions/common.fish").to_owned();
            script.push_str(&format!(
                "complete -c haulage -n __fish_use_subcommand -x -a '{}'\n\
                 complete -c haulage -n __fish_use_subcommand -s h -l help -d 'list the commands'\n\
                 complete -c haulage -n __fish_use_subcommand -s V -l version -d 'which haulage this is'\n",
                names(tables)
            ));
            for table in tables {
                let begin = format!("complete -c haulage -n '__haulage_is {}'", table.name);
                script.push_str(&fish_lines(table, &begin));
            }
            script
        }
    }
}

fn fish_lines(table: &Table, begin: &str) -> String {
    let mut script = String::new();
    // Files are what fish completes by default.
    if table.operands != Argument::File {
        let operands = fish_action(&table.operands, false).replace(" -x", " -f");
        script.push_str(&format!("{begin}{operands}\n"));
    }
    for row in &table.options {
        let shorts = row.shorts.iter().map(|letter| format!(" -s {letter}"));
        let names: String =
            shorts.chain(row.longs.iter().map(|name| format!(" -l {name}"))).collect();
        let action = match row.argument {
            Argument::None => String::new(),
            ref argument => fish_action(argument, row.optional),
        };
        let help = row.help.replace('\\', "\\\\").replace('\'', "\\'");
        script.push_str(&format!("{begin}{names}{action} -d '{help}'\n"));
    }
    script
}

fn fish_action(argument: &Argument, optional: bool) -> String {
    let (needs, words) = match argument {
        Argument::None => (" -x", None),
        Argument::File => (" -r -F", None),
        Argument::Directory => (" -x", Some("(__fish_complete_directories)".to_owned())),
        Argument::Run => (" -x", Some("(__haulage_runs)".to_owned())),
        Argument::Words(words) => (" -x", Some(words.join(" "))),
        Argument::Part(experiments) => {
            (" -x", Some(format!("(__haulage_parts{})", parts_of(experiments))))
        }
        Argument::WordsOrFile(words) => ("", Some(words.join(" "))),
        Argument::List(words) => (" -x", Some(format!("(__fish_append , {})", words.join(" ")))),
        Argument::Anything => (" -x", None),
    };
    let needs = if optional { "" } else { needs };
    words.map_or(needs.to_owned(), |words| format!("{needs} -a '{words}'"))
}
