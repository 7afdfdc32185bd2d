//! What completions know of a command.

/// A command, its options and what its operands are.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) options: Vec<OptionRow>,
    pub(crate) operands: Argument,
}

/// An option.
pub(crate) struct OptionRow {
    pub(crate) shorts: Vec<char>,
    /// The long names of the option, without dashes.
    pub(crate) longs: Vec<String>,
    /// The names of its arguments.
    pub(crate) metavars: Vec<String>,
    /// What each of its arguments is.
    pub(crate) argument: Argument,
    /// Whether the argument may be left out.
    pub(crate) optional: bool,
    /// One phrase.
    pub(crate) help: String,
}

/// What may stand for an argument or an operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Argument {
    None,
    File,
    Directory,
    /// A run directory, or a file.
    Run,
    Words(Vec<String>),
    /// One of the parts of the experiments on the line: each experiment's name and its parts. Of a
    /// file they are read when they are completed.
    Part(Vec<(String, Vec<String>)>),
    /// One of the words, or a file.
    WordsOrFile(Vec<String>),
    /// Words with commas between.
    List(Vec<String>),
    Anything,
}

impl OptionRow {
    /// `-S` and `--suffix`, as they are typed.
    pub(crate) fn spellings(&self) -> Vec<String> {
        let shorts = self.shorts.iter().map(|letter| format!("-{letter}"));
        shorts.chain(self.longs.iter().map(|name| format!("--{name}"))).collect()
    }
}
