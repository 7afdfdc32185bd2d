//! The program `haulage`.

#![cfg_attr(all(target_env = "gnu", not(test)), no_main)]

#[global_allocator]
static ALLOCATOR: sys::Allocator = sys::Allocator;

sys::program!(haulage_cli::run);
sys::math_functions!();
