#!/usr/bin/env bash
# Fuzzes every target, or those that are named, for FUZZ_S seconds each; as many at once as there are processors.
# Inputs that make one fail are left in crates/fuzz/artifacts/TARGET; exit code 1 if there are any. What is new in coverage is kept in
# target/fuzz/TARGET, not in the corpus: `crates/fuzz/run.sh --merge TARGET` adds the few of it that cover what no other input does.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${FUZZ_S:-60}
# libFuzzer is C++, which clang compiles: it is there for the BPF programs.
CXX=${CXX:-clang++} RUSTC_WORKSPACE_WRAPPER=$PWD/crates/fuzz/rustc.sh \
    cargo build --release --locked -p weir-fuzz --features libfuzzer --bin weir-fuzz
# The next ordinary build puts another program of that name there.
program=target/fuzz/weir-fuzz
mkdir -p target/fuzz
cp target/release/weir-fuzz "$program"
if [[ ${1:-} == --merge ]]; then
    mkdir -p "target/fuzz/$2"
    WEIR_FUZZ_TARGET=$2 exec "$program" -merge=1 -rss_limit_mb=1024 -timeout=10 "crates/fuzz/corpus/$2" "target/fuzz/$2"
fi
mapfile -t targets < <(if [[ $# -gt 0 ]]; then printf '%s\n' "$@"; else ls crates/fuzz/corpus; fi)

fuzz() {
    local target=$1 log=target/fuzz/$1.log
    local longest
    longest=$(find "crates/fuzz/corpus/$target" -type f -printf '%s\n' | sort -n | tail -1)
    mkdir -p "target/fuzz/$target" "crates/fuzz/artifacts/$target"
    if WEIR_FUZZ_TARGET=$target RUST_BACKTRACE=1 "$program" -max_total_time="$seconds" -rss_limit_mb=1024 -timeout=10 \
        -max_len="$((longest > 1024 ? longest : 1024))" -artifact_prefix="crates/fuzz/artifacts/$target/" -print_final_stats=1 \
        "target/fuzz/$target" "crates/fuzz/corpus/$target" "$(ls -d "crates/fuzz/regressions/$target" 2>/dev/null || echo "crates/fuzz/corpus/$target")" \
        >"$log" 2>&1; then
        rmdir --ignore-fail-on-non-empty "crates/fuzz/artifacts/$target"
        echo "$target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs, none fails"
    else
        echo "$target: FAILED; the input is in crates/fuzz/artifacts/$target, what it did in $log:" >&2
        grep -m1 -A3 -E 'panicked at|ERROR: libFuzzer|SUMMARY' "$log" >&2 || tail -3 "$log" >&2
        return 1
    fi
}
export -f fuzz
export seconds program
printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I{} bash -c 'fuzz {}'
