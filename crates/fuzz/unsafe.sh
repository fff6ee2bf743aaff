#!/usr/bin/env bash
# Tests of unsafe code under Miri, which sees undefined behaviour, and under Valgrind, which sees memory that is read too early,
# too late or beyond its end. What is not installed is left out, and says so. Most unsafe code of weir is system calls, which
# Miri does not carry out.
set -euo pipefail
cd "$(dirname "$0")/../.."

# Crate and tests whose unsafe code is weir's own: aligned buffers, prefetching, the layout of the kernel's structures.
miri=(weir-replayer:buffer weir-cache:tests weir-collectors:block::event)
# Besides these, mapped memory and direct I/O.
valgrind=(weir-replayer:buffer weir-cache:tests weir-blockserver:backing weir-blockserver:ublk::abi
    weir-collectors:block::event weir-host:page_cache)

if rustup run nightly cargo miri --version >/dev/null 2>&1; then
    for pair in "${miri[@]}"; do
        echo "Miri: ${pair%%:*} ${pair#*:}"
        PROPTEST_CASES=4 MIRIFLAGS=-Zmiri-disable-isolation CARGO_TARGET_DIR=target/miri \
            rustup run nightly cargo miri test --locked --offline -p "${pair%%:*}" --lib "${pair#*:}"
    done
else
    echo "Miri is left out: rustup toolchain install nightly; rustup component add miri rust-src --toolchain nightly"
fi
if command -v valgrind >/dev/null; then
    for pair in "${valgrind[@]}"; do
        echo "Valgrind: ${pair%%:*} ${pair#*:}"
        CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="valgrind --quiet --error-exitcode=9 --fair-sched=yes" PROPTEST_CASES=4 \
            cargo test --release --locked --offline -p "${pair%%:*}" --lib "${pair#*:}" -- --test-threads 1
    done
else
    echo "Valgrind is left out: apt-get install valgrind"
fi
