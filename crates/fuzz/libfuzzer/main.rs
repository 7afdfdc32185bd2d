//! Hands what libFuzzer makes to the target that `HAULAGE_FUZZ_TARGET` names.

#![no_main]

use std::sync::OnceLock;

use fuzz_targets::Target;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    static TARGET: OnceLock<&Target> = OnceLock::new();
    let target = TARGET.get_or_init(|| {
        let name = std::env::var("HAULAGE_FUZZ_TARGET").expect("cargo xtask fuzz sets it");
        fuzz_targets::by_name(&name).expect("cargo xtask fuzz names a target")
    });
    (target.run)(input);
});
