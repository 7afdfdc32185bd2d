//! Files of /proc that are kept open and read many times.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

/// One such file, opened once: before and after each run of a few microseconds, opening it would be
/// most of what the run takes.
#[derive(Debug)]
pub(crate) struct ProcFile {
    path: &'static str,
    file: OnceLock<Option<File>>,
}

/// Longer than the files that are read here; what is longer is read in pieces.
const PIECE_BYTES: usize = 16 << 10;

impl ProcFile {
    pub(crate) const fn new(path: &'static str) -> ProcFile {
        ProcFile { path, file: OnceLock::new() }
    }

    /// What the file says now, to `look`; `None` where there is no such file.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&str) -> T) -> Option<T> {
        let file = self.file.get_or_init(|| File::open(self.path).ok()).as_ref()?;
        let mut bytes = vec![0; PIECE_BYTES];
        let mut filled = 0;
        loop {
            // Each read from 0 generates the text again; the others go on with it.
            match file.read_at(&mut bytes[filled..], filled as u64) {
                Ok(0) => break,
                Ok(got) => filled += got,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
            if filled == bytes.len() {
                bytes.resize(2 * filled, 0);
            }
        }
        std::str::from_utf8(&bytes[..filled]).ok().map(look)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_anew_and_whole() {
        static STATUS: ProcFile = ProcFile::new("/proc/thread-self/stat");
        let look = || STATUS.read(str::to_owned).expect("read");
        assert!(look().starts_with(&format!("{} ", rustix::thread::gettid().as_raw_nonzero())));
        static MAPS: ProcFile = ProcFile::new("/proc/self/smaps");
        let all = std::fs::read_to_string("/proc/self/smaps").expect("read");
        assert!(all.len() > PIECE_BYTES && MAPS.read(str::len).expect("read") > PIECE_BYTES);
        static NONE: ProcFile = ProcFile::new("/proc/no-such-file");
        assert_eq!(NONE.read(str::len), None);
        let before = crate::clock::device_bytes::device_bytes().expect("they are counted");
        let mut file = tempfile::tempfile().expect("created");
        std::io::Write::write_all(&mut file, &vec![1; 1 << 20]).expect("written");
        let after = crate::clock::device_bytes::device_bytes().expect("they are counted");
        assert!(after.written >= before.written + (1 << 20), "{before:?} {after:?}");
    }
}
