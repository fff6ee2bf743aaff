#!/bin/sh
# Compiles weir's own crates with libFuzzer's coverage; cargo calls it for these alone (RUSTC_WORKSPACE_WRAPPER), so that all
# else is shared with the other builds. Build scripts run by themselves, without libFuzzer.
case " $* " in
*" --crate-name build_script_"* | *" --crate-type proc-macro "*) exec "$@" ;;
esac
exec "$@" -C passes=sancov-module \
    -C llvm-args=-sanitizer-coverage-level=4 \
    -C llvm-args=-sanitizer-coverage-inline-8bit-counters \
    -C llvm-args=-sanitizer-coverage-pc-table \
    -C llvm-args=-sanitizer-coverage-trace-compares \
    -C debug-assertions=on -C overflow-checks=on -C codegen-units=1
