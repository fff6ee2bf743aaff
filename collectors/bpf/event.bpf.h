/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Output of block.bpf.c: events for user space, in the ring of this CPU (completed requests) or in the ring buffer `events`.
 *
 * Only block.bpf.c includes this file, after both. The layout of an event is in block.h; programs and
 * their data are in block.bpf.c.
 */

/* The next event of this CPU's ring; 0 if the ring is full. Only programs at block_rq_complete may call it. */
static __always_inline struct block_event *next_completed(struct ring **ring_of_event)
{
	__u32 cpu = bpf_get_smp_processor_id();

	if (cpu >= ring_cpus || cpu >= MAX_CPUS)
		return 0;
	struct ring *ring = &rings[cpu];
	__u64 written = ring->written;
	if (written - *(volatile __u64 *)&ring->taken >= ring_events)
		return 0;
	*ring_of_event = ring;
	__u64 index = (__u64)cpu * ring_events + (written & (ring_events - 1));
	struct block_event *first = completed;

	/* Otherwise the compiler knows that the array has one element: the loader makes it larger. */
	__asm__ volatile("" : "+r"(first));
	return first + index;
}

/* Hands the event to user space, which must not see it before its fields. */
static __always_inline void publish(struct ring *ring)
{
#ifdef __TARGET_ARCH_x86
	/*
	 * Stores become visible in program order, so that a plain one is enough: a locked operation would wait until the cache
	 * lines of the event, which user space has read last, are here.
	 */
	__asm__ volatile("" ::: "memory");
	*(volatile __u64 *)&ring->written = ring->written + 1;
#else
	__u64 before = __sync_fetch_and_add(&ring->written, 1);

	/* A used result makes this the operation that is a barrier on every architecture. */
	__asm__ volatile("" : : "r"(before));
#endif
}

static __always_inline void fill(struct block_event *e, struct slot *slot, __u64 completed_ns, __u8 status, __u64 kind)
{
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
}

/* A request whose completion was not seen: any program may find it. */
static __always_inline void emit_hidden(struct slot *slot, __u64 *ring_full)
{
	struct block_event *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);

	if (!e) {
		(*ring_full)++;
		return;
	}
	fill(e, slot, 0, 0, EVENT_HIDDEN);
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}
