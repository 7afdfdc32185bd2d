//! The program `haulage`.

#![cfg_attr(all(target_env = "gnu", not(test)), no_main)]

#[global_allocator]
static ALLOCATOR: engines::sys::Allocator = engines::sys::Allocator;

engines::program!(haulage_cli::run);
engines::math_functions!();
