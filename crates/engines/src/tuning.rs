//! The parameters of an engine, and their values.

/// The largest offset of a buffer from the start of a page, in bytes: the last byte of the smallest
/// page.
pub(crate) const OFFSET_BYTES_MAX: u64 = 4095;

/// One parameter of an engine.
#[derive(Debug)]
pub struct Param {
    /// The key in the text form; the unit is in `kind`.
    pub name: &'static str,
    /// The values that it takes.
    pub kind: ParamKind,
    /// What it does, in one line.
    pub about: &'static str,
}

/// The values that a [`Param`] takes.
#[derive(Clone, Copy, Debug)]
pub enum ParamKind {
    /// Bytes. An engine's first parameter of this kind is written without its key:
    /// `read_write:256K`.
    Bytes {
        /// The value if the text does not contain the key.
        default: u64,
        /// The smallest useful value.
        min: u64,
        /// The largest value that the engine takes.
        max: u64,
    },
    /// A plain number.
    Count {
        /// The value if the text does not contain the key.
        default: u64,
        /// The smallest useful value.
        min: u64,
        /// The largest value that the engine takes.
        max: u64,
    },
    /// The number of bytes between the start of a page and the start of a buffer. 0, the default,
    /// is not written.
    Offset {
        /// The largest useful value.
        max: u64,
    },
    /// On if the text contains its key.
    Flag,
}

/// The values of an engine's parameters.
#[derive(Clone, Debug)]
pub struct Tuning {
    params: &'static [Param],
    /// One slot for each parameter, in the order of the engine's row; `None` is the default.
    pub(crate) set: Vec<Option<u64>>,
}

impl Tuning {
    /// Every parameter of an engine at its default.
    #[must_use]
    pub fn defaults(params: &'static [Param]) -> Tuning {
        Tuning { params, set: vec![None; params.len()] }
    }

    /// Sets the parameter `name` to `value`.
    ///
    /// # Panics
    /// When the engine has no such parameter.
    #[must_use]
    pub fn with(mut self, name: &str, value: u64) -> Tuning {
        let (index, _) = self.find(name);
        self.set[index] = Some(value);
        self
    }

    /// The value of the parameter `name`; a flag is 1 or 0.
    ///
    /// # Panics
    /// If the engine has no such parameter: a misspelling in the engine's own code.
    #[must_use]
    pub fn get(&self, name: &str) -> u64 {
        let (index, param) = self.find(name);
        self.set[index].unwrap_or(match param.kind {
            ParamKind::Bytes { default, .. } | ParamKind::Count { default, .. } => default,
            ParamKind::Offset { .. } | ParamKind::Flag => 0,
        })
    }

    /// [`get`](Tuning::get) as a length in memory.
    ///
    /// # Panics
    /// If the engine has no such parameter, or its `max` exceeds the address space.
    #[must_use]
    pub fn bytes(&self, name: &str) -> usize {
        usize::try_from(self.get(name)).expect("a parameter's maximum fits the address space")
    }

    /// Whether the flag `name` is on.
    ///
    /// # Panics
    /// If the engine has no such parameter.
    #[must_use]
    pub fn flag(&self, name: &str) -> bool {
        self.get(name) != 0
    }

    fn find(&self, name: &str) -> (usize, &'static Param) {
        self.params
            .iter()
            .enumerate()
            .find(|(_, param)| param.name == name)
            .unwrap_or_else(|| panic!("no parameter is called '{name}'"))
    }
}
