/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Output of block.bpf.c: writes one event of a completed request to the ring buffer that user space reads.
 *
 * Only block.bpf.c includes this file, after its ring buffer `events`. The layout of an event is in block.h; programs and
 * their data are in block.bpf.c.
 */

static __always_inline void emit(struct slot *slot, __u64 completed_ns, __u8 status, __u64 kind, __u64 *ring_full)
{
	struct block_event *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);

	if (!e) {
		(*ring_full)++;
		return;
	}
	e->queued_ns = slot->queued_ns;
	e->inserted_ns = slot->inserted_ns;
	e->issued_ns = slot->issued_ns;
	e->completed_ns = completed_ns;
	e->sector = slot->sector;
	e->cgroup = slot->cgroup;
	e->bytes = slot->bytes;
	e->cmd_flags = slot->cmd_flags;
	e->pid = slot->pid;
	e->priority = slot->priority;
	e->device = slot->device;
	e->status = status;
	e->kind = kind;
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}
