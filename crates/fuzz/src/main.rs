//! libFuzzer program for the target in `WEIR_FUZZ_TARGET`. `make fuzz` builds it with coverage and runs it.

#![no_main]

use std::sync::LazyLock;

static TARGET: LazyLock<&'static weir_fuzz::Target> = LazyLock::new(|| {
    let name = std::env::var("WEIR_FUZZ_TARGET").unwrap_or_default();
    weir_fuzz::find(&name).unwrap_or_else(|| {
        let known: Vec<&str> = weir_fuzz::TARGETS.iter().map(|target| target.name).collect();
        eprintln!("WEIR_FUZZ_TARGET={name}: no such target (known: {})", known.join(", "));
        std::process::exit(2);
    })
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if data.len() <= TARGET.most_bytes {
        (TARGET.run)(data);
    }
});
