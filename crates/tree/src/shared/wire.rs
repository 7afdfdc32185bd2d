//! Values as bytes, for messages between ranks. All ranks run the same program.

use std::ffi::CString;

use crate::fs::{FileId, is_component};

/// Appends values.
#[derive(Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    pub(crate) fn count(&mut self, count: usize) {
        self.number(count as u64);
    }

    pub(crate) fn flag(&mut self, flag: bool) {
        self.0.push(u8::from(flag));
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn id(&mut self, id: FileId) {
        self.number(id.dev);
        self.number(id.ino);
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// Reads values in the order in which they were written; `None` if the next is not complete.
pub(crate) struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Reader<'b> {
        Reader(bytes)
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    /// A number of values that follow, each of at least a byte.
    pub(crate) fn count(&mut self) -> Option<usize> {
        let count = self.number()?;
        usize::try_from(count).ok().filter(|&count| count <= self.0.len())
    }

    pub(crate) fn flag(&mut self) -> Option<bool> {
        let (&flag, rest) = self.0.split_first()?;
        self.0 = rest;
        (flag < 2).then_some(flag == 1)
    }

    pub(crate) fn bytes(&mut self) -> Option<&'b [u8]> {
        let count = self.count()?;
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    /// A name that is one component of a path.
    pub(crate) fn component(&mut self) -> Option<CString> {
        CString::new(self.bytes()?).ok().filter(|name| is_component(name))
    }

    pub(crate) fn id(&mut self) -> Option<FileId> {
        Some(FileId { dev: self.number()?, ino: self.number()? })
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    /// How many bytes were not read.
    pub(crate) fn bytes_left(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_nothing_else() {
        let id = FileId { dev: 7, ino: u64::MAX };
        let mut out = Writer::default();
        out.number(3);
        out.flag(true);
        out.bytes(b"a\xff\nb");
        out.id(id);
        let bytes = out.into_bytes();
        let mut reader = Reader::new(&bytes);
        assert_eq!((reader.number(), reader.flag()), (Some(3), Some(true)));
        assert_eq!(reader.component().as_deref(), Some(c"a\xff\nb"));
        assert_eq!(reader.id(), Some(id));
        assert!(reader.is_at_end());
        // A part of a message is not taken for a whole one.
        for end in 0..bytes.len() {
            let mut reader = Reader::new(&bytes[..end]);
            let whole = reader.number().and(reader.flag()).and(reader.bytes()).and(reader.id());
            assert_eq!(whole, None, "{end}");
        }
    }

    #[test]
    fn only_a_single_component_is_a_name() {
        for (name, is_name) in
            [("a", true), ("..", false), (".", false), ("", false), ("a/b", false), ("a\0", false)]
        {
            let mut out = Writer::default();
            out.bytes(name.as_bytes());
            let bytes = out.into_bytes();
            assert_eq!(Reader::new(&bytes).component().is_some(), is_name, "{name:?}");
        }
    }
}
