//! What is wrong with an option, by the machine's own cp. Whole command lines are those of the
//! differential tests of the program.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use super::{gnu_on_this_machine, words};
use crate::cp::environment::Environment;
use crate::cp::flags::GNU;
use crate::cp::flags::flag::Flag;
use crate::cp::messages::quote::Charset;
use crate::cp::parse::parse;

#[test]
fn every_beginning_of_every_option_means_what_it_means_to_the_machines_cp() {
    let Some(program) = gnu_on_this_machine() else { return };
    for name in GNU.iter().flat_map(Flag::longs).filter(|name| !SINCE_9_1.contains(name)) {
        for len in 1..=name.len() {
            for value in ["", "=", "=x"] {
                let option = format!("--{}{value}", &name[..len]);
                // These begin options that 9.1 has not, or are one that takes more now.
                let newer = SINCE_9_1.iter().any(|newer| newer.starts_with(&name[..len]));
                let takes_more = name == "update" && !value.is_empty();
                if !newer && !takes_more {
                    check_against(program, &option);
                }
            }
        }
    }
}

/// Long options of GNU cp that 9.1 has not.
const SINCE_9_1: &[&str] = &["debug", "keep-directory-symlink"];

fn check_against(gnu: &str, option: &str) {
    let output = Command::new(gnu)
        .arg0("cp")
        .arg(option)
        .env_clear()
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .expect("cp can be run");
    let told = String::from_utf8_lossy(&output.stderr);
    match parse(words(option), &Environment::default(), &mut |_| ()) {
        // Help and version: there is nothing to complain of.
        Ok(_) => assert_eq!(told, "", "{option}"),
        Err(error) => {
            let lines = error.lines_in(Charset::Ascii, b"cp");
            // What it warns of comes before.
            assert!(told.ends_with(&*String::from_utf8_lossy(&lines)), "{option}: {told}");
        }
    }
}
