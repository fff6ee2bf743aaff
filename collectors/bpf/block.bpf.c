/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Block requests, from the arrival of the first bio to completion.
 *
 * Mode `full`: a request's state is in a table keyed by the request's first bio. The entry is made at block_bio_queue: the
 * wait for a hardware tag counts as queueing (block_io_start and the request's own start_time_ns come after it), and a
 * second table keyed by request is not needed. The table is a set-associative array in the data segment, without a lock,
 * allocation or hash-map helper on the hot path.
 * Mode `lean`: one program without a table, which reads the kernel's own times of the request at completion.
 *
 * Only tp_btf programs: no kprobe, no fentry, no kernel headers.
 *
 * This file has the programs and their data. table.bpf.h has the functions of the table, event.bpf.h those that write an
 * event for user space, names.bpf.h those that send names of tasks. block.h has the types
 * that the loader shares, kernel.h the kernel's types.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "block.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile __u32 device_count = 0;
const volatile __u32 devices[MAX_DEVICES] = {}; /* (major << 20) | minor, as the kernel writes dev_t */

/* Masks of request flags. The loader sets those of the kernel; these are the macros of Linux before 6.11. */
const volatile __u32 rqf_io_stat = 1U << 13;
const volatile __u32 rqf_flush_seq = 1U << 4;

/* Set by the loader, read on every event: not in the segment of frequently written data. */
int recording SEC(".data") = RECORDING_OFF;
__u64 started_ns SEC(".data") = 0;

struct counters counters[MAX_DEVICES * MAX_CPUS] = {};
struct slot slots[SLOTS] = {};
struct named named[NAMES] = {};
__u64 table_address = 0;

/* Events of one CPU's ring, a power of two, and the number of CPUs: the loader sets both, and the size of `completed`. */
const volatile __u32 ring_events = 1;
const volatile __u32 ring_cpus = 1;
struct ring rings[MAX_CPUS] = {};
struct block_event completed[1] SEC(".data.completed");

/* Names of tasks, and requests whose completion was not seen: what other programs send. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} events SEC(".maps");

#define NO_DEVICE MAX_DEVICES

static __always_inline __u32 find_device(struct gendisk *disk)
{
	__u32 dev = ((__u32)disk->major << 20) | (__u32)disk->first_minor;

#pragma unroll
	for (int i = 0; i < MAX_DEVICES; i++)
		if (i < device_count && devices[i] == dev)
			return i;
	return NO_DEVICE;
}

#include "event.bpf.h"
#include "table.bpf.h"

static __always_inline __u64 cgroup_of(struct bio *bio)
{
	if (!bpf_core_field_exists(bio->bi_blkg))
		return 0;
	struct blkcg_gq *group = bio->bi_blkg;

	return group ? group->blkcg->css.cgroup->kn->id : 0;
}

static __always_inline __u64 key_of(struct request *rq)
{
	struct bio *bio = rq->bio;

	return bio ? key_from(bio) : key_from(rq);
}

#include "names.bpf.h"

SEC("tp_btf/block_bio_queue")
int BPF_PROG(bio_queue, struct bio *bio)
{
	if (recording != RECORDING_ON)
		return 0;
	__u32 device = find_device(bio->bi_bdev->bd_disk);
	if (device == NO_DEVICE)
		return 0;
	struct counters *c = count(device);
	c->bios_queued++;
	struct slot *slot = claim(key_from(bio), c);
	if (!slot)
		return 0;
	slot->queued_ns = bpf_ktime_get_ns();
	slot->device = device;
	slot->priority = bio->bi_ioprio;
	slot->cmd_flags = bio->bi_opf;
	slot->cgroup = cgroup_of(bio);
	slot->pid = tell_name(slot->queued_ns);
	return 0;
}

/* The front part of a split bio is a new bio whose bi_private is the one that was queued. */
SEC("tp_btf/block_split")
int BPF_PROG(bio_split, struct bio *front)
{
	if (recording != RECORDING_ON)
		return 0;
	__u32 device = find_device(front->bi_bdev->bd_disk);
	if (device == NO_DEVICE)
		return 0;
	struct counters *c = count(device);
	c->splits++;
	struct slot *whole = find_slot(key_from_number((__u64)BPF_CORE_READ(front, bi_private)));
	if (!whole)
		return 0;
	struct slot *part = claim(key_from(front), c);
	if (!part)
		return 0;
	part->queued_ns = whole->queued_ns;
	part->device = device;
	part->priority = whole->priority;
	part->cmd_flags = whole->cmd_flags;
	part->cgroup = whole->cgroup;
	part->pid = whole->pid;
	return 0;
}

SEC("tp_btf/block_bio_backmerge")
int BPF_PROG(bio_back_merge, struct bio *bio)
{
	if (!recording)
		return 0;
	__u32 device = find_device(bio->bi_bdev->bd_disk);
	if (device == NO_DEVICE)
		return 0;
	count(device)->bio_back_merges++;
	struct slot *slot = find_slot(key_from(bio));
	if (slot)
		release(slot);
	return 0;
}

/* The bio becomes the first of its request: rq_issue() finds the former first one. */
SEC("tp_btf/block_bio_frontmerge")
int BPF_PROG(bio_front_merge, struct bio *bio)
{
	if (!recording)
		return 0;
	__u32 device = find_device(bio->bi_bdev->bd_disk);
	if (device == NO_DEVICE)
		return 0;
	count(device)->bio_front_merges++;
	struct slot *slot = find_slot(key_from(bio));
	if (slot)
		slot->state = SLOT_FRONT_MERGED;
	return 0;
}

/* `rq` is absorbed by the request before it. */
SEC("tp_btf/block_rq_merge")
int BPF_PROG(rq_merge, struct request *rq)
{
	if (!recording)
		return 0;
	__u32 device = find_device(rq->q->disk);
	if (device == NO_DEVICE)
		return 0;
	count(device)->request_merges++;
	struct slot *slot = find_slot(key_of(rq));
	if (slot)
		release(slot);
	return 0;
}

SEC("tp_btf/block_rq_insert")
int BPF_PROG(rq_insert, struct request *rq)
{
	if (!recording)
		return 0;
	__u32 device = find_device(rq->q->disk);
	if (device == NO_DEVICE)
		return 0;
	struct slot *slot = find_slot(key_of(rq));
	if (slot)
		slot->inserted_ns = bpf_ktime_get_ns();
	return 0;
}

/* Bios merged in front of one another, and the request that they were merged into. */
#define MAX_FRONT_MERGES 32

static __always_inline void adopt_origin(struct slot *slot, struct bio *bio)
{
	slot->state = SLOT_QUEUED;
	for (int i = 0; i < MAX_FRONT_MERGES; i++) {
		bio = bio->bi_next;
		if (!bio)
			return;
		struct slot *older = find_slot(key_from(bio));
		if (!older)
			return;
		if (older->state != SLOT_FRONT_MERGED) {
			slot->queued_ns = older->queued_ns;
			slot->inserted_ns = older->inserted_ns;
			slot->pid = older->pid;
			slot->cgroup = older->cgroup;
			release(older);
			return;
		}
		release(older);
	}
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(rq_issue, struct request *rq)
{
	if (!recording)
		return 0;
	__u32 device = find_device(rq->q->disk);
	if (device == NO_DEVICE)
		return 0;
	struct counters *c = count(device);
	struct bio *bio = rq->bio;
	struct slot *slot = find_slot(key_of(rq));

	c->issued++;
	if (!slot) {
		if (recording != RECORDING_ON || (bio && rq->start_time_ns && rq->start_time_ns < started_ns))
			return 0;
		if (bio)
			c->arrival_unknown++;
		slot = claim(key_of(rq), c);
		if (!slot)
			return 0;
		slot->queued_ns = 0;
		slot->device = device;
		slot->priority = bio ? bio->bi_ioprio : 0;
		slot->cgroup = bio ? cgroup_of(bio) : 0;
		slot->pid = 0;
		slot->cmd_flags = 0;
	} else if (slot->state == SLOT_FRONT_MERGED && bio) {
		adopt_origin(slot, bio);
	}
	slot->sector = rq->__sector;
	slot->bytes = rq->__data_len;
	/* The flush sequence clears the request's flags: a flush before, durability after. */
	slot->cmd_flags = rq->cmd_flags | (slot->cmd_flags & ((1U << bpf_core_enum_value(enum req_flag_bits, __REQ_FUA)) |
							      (1U << bpf_core_enum_value(enum req_flag_bits, __REQ_PREFLUSH))));
	slot->state = SLOT_ISSUED;
	slot->issued_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/block_rq_requeue")
int BPF_PROG(rq_requeue, struct request *rq)
{
	if (!recording)
		return 0;
	__u32 device = find_device(rq->q->disk);
	if (device == NO_DEVICE)
		return 0;
	count(device)->requeued++;
	struct slot *slot = find_slot(key_of(rq));
	if (slot) {
		slot->state = SLOT_QUEUED;
		slot->issued_ns = 0;
	}
	return 0;
}

/*
 * Counts a completion as the kernel's statistics do. Returns whether the request is finished: completion of a part of its
 * bytes, or of the data stage in the flush sequence, is not the end.
 */
static __always_inline int finished(struct request *rq, unsigned int bytes, struct counters *c)
{
	__u32 flags = rq->rq_flags;
	__u32 group = group_of(rq->cmd_flags) & (GROUPS - 1);
	int counted = group == GROUP_FLUSH || (flags & rqf_io_stat);

	if (counted)
		c->sectors[group] += bytes >> 9;
	if (bytes < rq->__data_len)
		return 0;
	/* The block layer's own flush also has the flag, but is finished. */
	if (group != GROUP_FLUSH && (flags & rqf_flush_seq))
		return 0;
	if (counted)
		c->completed[group]++;
	else
		c->completed_uncounted++;
	return 1;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(rq_complete, struct request *rq, int status, unsigned int bytes)
{
	if (!recording)
		return 0;
	__u32 device = find_device(rq->q->disk);
	if (device == NO_DEVICE)
		return 0;
	struct counters *c = count(device);
	struct slot *slot = find_slot(key_of(rq));
	int done = finished(rq, bytes, c);

	if (slot) {
		if (slot->state == SLOT_ISSUED && bytes >= rq->__data_len) {
			c->driver_completions++;
			slot->state = SLOT_DATA_DONE;
		}
		if (!done)
			return 0;
		if (!slot->issued_ns) { /* an empty flush is not issued to the driver */
			slot->sector = rq->__sector;
			slot->bytes = bytes;
			slot->cmd_flags |= rq->cmd_flags;
		}
		struct ring *ring;
		struct block_event *e = next_completed(&ring);
		if (e) {
			fill(e, slot, bpf_ktime_get_ns(), status, EVENT_COMPLETED);
			publish(ring);
		} else {
			c->completions_ring_full++;
		}
		release(slot);
		return 0;
	}
	if (!done)
		return 0;
	if (recording != RECORDING_ON)
		c->after_stop++;
	else if (rq->start_time_ns < started_ns)
		c->before_start++;
	else
		c->arrival_unknown_at_end++;
	return 0;
}

/* Mode `lean`: the kernel's own times of the request. */
SEC("tp_btf/block_rq_complete")
int BPF_PROG(rq_complete_lean, struct request *rq, int status, unsigned int bytes)
{
	if (!recording)
		return 0;
	__u32 device = find_device(rq->q->disk);
	if (device == NO_DEVICE)
		return 0;
	struct counters *c = count(device);
	struct bio *bio = rq->bio;
	int done = finished(rq, bytes, c);

	/*
	 * A write in the flush sequence is reported when its data are written: at its end its size is gone, and a
	 * bio without pages is how an empty flush, which has no such stage, is told apart.
	 */
	if (bytes < rq->__data_len)
		return 0;
	if (done && bio && !bytes && bio->bi_io_vec)
		return 0;
	if (rq->start_time_ns < started_ns && rq->start_time_ns) {
		c->before_start++;
		return 0;
	}
	c->driver_completions++;
	struct ring *ring;
	struct block_event *e = next_completed(&ring);
	if (!e) {
		c->completions_ring_full++;
		return 0;
	}
	e->queued_ns = rq->start_time_ns;
	e->inserted_ns = 0;
	e->issued_ns = rq->io_start_time_ns;
	e->completed_ns = bpf_ktime_get_ns();
	e->sector = rq->__sector;
	e->bytes = bytes;
	e->cmd_flags = rq->cmd_flags;
	e->priority = bio ? bio->bi_ioprio : 0;
	e->cgroup = bio ? cgroup_of(bio) : 0;
	e->pid = 0;
	e->device = device;
	e->status = status;
	e->kind = EVENT_COMPLETED;
	publish(ring);
	return 0;
}
