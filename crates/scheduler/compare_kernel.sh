#!/usr/bin/env bash
# The models of the kernel's schedulers beside the kernel's own: the same requests on a modelled disk, and how many of
# the kernel's choices the model makes too. Needs root, FUSE, loop devices, tracefs and fio; takes about half a minute.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-target}
weir=${WEIR:-$target/release/weir}
[[ $EUID == 0 ]] || { echo "skipped: block devices need root"; exit 0; }
command -v fio > /dev/null || { echo "skipped: fio is not installed"; exit 0; }
[[ -x $weir ]] || { echo "skipped: there is no $weir; run \`make setup\`"; exit 0; }

cargo build --release --locked --quiet -p weir-scheduler --example compare_kernel
folder=$(mktemp --directory "${TMPDIR:-/tmp}/weir-compare.XXXXXX")
instance=
device=
merges=
undo() {
    # A loop device keeps what was set, for whoever gets it next.
    [[ -z $merges ]] || { echo none > "$queue/scheduler"; echo "$merges" > "$queue/nomerges"; }
    [[ -z $instance || ! -d $instance ]] || rmdir "$instance"
    [[ -z $device ]] || "$weir" serve --down-all "$folder/state" > /dev/null
    ! mountpoint --quiet "$folder/tracing" || umount "$folder/tracing"
    rm -r "$folder"
}
trap undo EXIT

mkdir "$folder/tracing"
mount -t tracefs nodev "$folder/tracing" 2> /dev/null || { echo "skipped: tracefs cannot be mounted"; exit 0; }
instance=$folder/tracing/instances/weir-$$
mkdir "$instance" 2> /dev/null || { instance=; echo "skipped: tracefs has no instances"; exit 0; }

printf 'name: compare\nprofile: hdd-15k\nsize_mib: 4096\n' > "$folder/disk.yml"
device=$("$weir" serve "$folder/disk.yml" --background --state "$folder/state" --json |
    python3 -c 'import json, sys; d = json.load(sys.stdin)["device"]; print(d["path"], d["major"] * 2**20 + d["minor"])')
read -r device number <<< "$device"
queue=/sys/block/${device#/dev/}/queue
merges=$(< "$queue/nomerges")
echo mono > "$instance/trace_clock"
echo 8192 > "$instance/buffer_size_kb"
for event in insert issue complete; do
    echo "dev == $number" > "$instance/events/block/block_rq_$event/filter"
done

# NAME "TUNABLE=VALUE ..." "SETTING=VALUE ..." FIO-OPTION...
compare() {
    local name=$1 tunables=$2 settings=$3 tunable event
    shift 3
    if ! grep -qw "$name" "$queue/scheduler"; then
        echo "linux-$name: skipped, this kernel has none"
        return
    fi
    # The device's tags are set without a scheduler, and the scheduler's with it. A write of the same value does nothing.
    echo none > "$queue/scheduler"; echo 5 > "$queue/nr_requests"; echo 4 > "$queue/nr_requests"
    echo "$name" > "$queue/scheduler"; echo 256 > "$queue/nr_requests"; echo 2 > "$queue/nomerges"
    for tunable in $tunables; do echo "${tunable#*=}" > "$queue/iosched/${tunable%%=*}"; done
    echo > "$instance/trace"
    for event in insert issue complete; do echo 1 > "$instance/events/block/block_rq_$event/enable"; done
    fio --direct=1 --ioengine=io_uring --norandommap --bs=4k --runtime=5 --time_based --filename="$device" "$@" > "$folder/fio.log"
    for event in insert issue complete; do echo 0 > "$instance/events/block/block_rq_$event/enable"; done
    cat "$instance/trace" > "$folder/$name.trace"
    # shellcheck disable=SC2086
    "$target/release/examples/compare_kernel" "$folder/$name.trace" "linux-$name" "$tick_ns" $settings
}

# The kernel rounds times to its ticks, of which a second has as many as CONFIG_HZ says.
hz=$( (zcat /proc/config.gz || cat "/boot/config-$(uname -r)") 2> /dev/null | sed -n 's/^CONFIG_HZ=//p')
tick_ns=$((1000000000 / ${hz:-250}))

mixed=(--name=mixed --rw=randrw --rwmixread=70 --randseed=7)
compare mq-deadline "read_expire=100 write_expire=300" "read_expire=100 write_expire=300" "${mixed[@]}" --iodepth=48
compare mq-deadline "read_expire=20 write_expire=60 fifo_batch=3 writes_starved=4" \
    "read_expire=20 write_expire=60 fifo_batch=3 writes_starved=4" "${mixed[@]}" --bsrange=4k-64k --iodepth=40
compare kyber "" "" "${mixed[@]}" --iodepth=32
# Far from each other, or BFQ would merge their queues.
compare bfq "low_latency=0 slice_idle=0 max_budget=16384" "slice_idle=0 timeout_sync=124" --rw=randread --size=1g --iodepth=8 \
    --name=one --offset=0 --randseed=7 --name=two --offset=1400m --randseed=9 --name=three --offset=2800m --randseed=11
