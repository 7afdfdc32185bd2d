//! Sends a file to standard output, whatever that is: `send FILE | ...`. It prints which engine moved
//! the bytes.

use std::fs::File;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(name) = std::env::args_os().nth(1) else {
        eprintln!("usage: send FILE");
        return ExitCode::from(2);
    };
    let sent =
        File::open(&name).and_then(|file| Ok(haulage::copy_descriptors(file, std::io::stdout())?));
    match sent {
        Ok(sent) => {
            eprintln!("{} bytes by {}", sent.data_bytes, sent.engine.unwrap_or("no engine"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("send: {error}");
            ExitCode::FAILURE
        }
    }
}
