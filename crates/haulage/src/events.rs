//! What a copy tells: diagnostics, receipts and progress as values. The command line makes its
//! messages of them.

pub use engines::{Errno, Moved, Span, Stop};
pub use rustix::fs::{FileType, Mode};
pub use tree::{
    Action, Announcement, Attempt, Attribute, Chosen, ChosenBy, CurrentFile, Diagnostic,
    DirectoryStage, FileId, Loss, Method, Observer, Offload, Outcome, PreScan, Progress,
    ProgressTracker, Question, Receipt, Severity, SparseDetection, Totals, Verified, fill,
    words_of_error,
};
