/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Table of outstanding requests: a set-associative array in the data segment. Part of block.bpf.c. */

static __always_inline struct counters *count(__u32 device)
{
	__u64 index = (__u64)device * MAX_CPUS + (bpf_get_smp_processor_id() & (MAX_CPUS - 1));

	/* In assembly: otherwise the compiler moves the mask to where the verifier of older kernels (6.1) does not track it. */
	__asm__ volatile("%0 &= %1" : "+r"(index) : "i"(MAX_DEVICES * MAX_CPUS - 1));
	return &counters[index];
}

/*
 * Key of a bio, or of a request without one. The verifier forbids arithmetic with kernel pointers, but the difference of two
 * pointers is a plain number: here from the table, which does not move.
 */
#define key_from(pointer) ((__u64)(pointer) - (__u64)slots)

/*
 * The same for a `void *`, which kernels type differently: it is read as a number. A pointer must not be subtracted from a
 * number (6.1): the table's address becomes a number too, through memory.
 */
static __always_inline __u64 key_from_number(__u64 pointer)
{
	*(volatile __u64 *)&table_address = (__u64)slots;
	return pointer - *(volatile __u64 *)&table_address;
}

static __always_inline __u32 set_of(__u64 key)
{
	/* Bios and requests are aligned to about 64 bytes; the golden ratio spreads the rest. */
	return (__u32)(((key >> 5) * 0x9E3779B97F4A7C15ULL) >> 40) & (SETS - 1);
}

static __always_inline struct slot *find_slot(__u64 key)
{
	__u32 first = set_of(key) * WAYS;

#pragma unroll
	for (int way = 0; way < WAYS; way++) {
		struct slot *slot = &slots[(first + way) & (SLOTS - 1)];
		if (slot->key == key)
			return slot;
	}
	return 0;
}

static __always_inline void release(struct slot *slot)
{
	__asm__ volatile("" ::: "memory");
	*(volatile __u64 *)&slot->key = 0;
}

static __always_inline __u32 group_of(__u32 cmd_flags)
{
	__u32 op = cmd_flags & 0xff;

	if (op == 2)
		return GROUP_FLUSH;
	if (op == 3)
		return GROUP_DISCARD;
	return op & 1 ? GROUP_WRITE : GROUP_READ;
}

/* A slot for `key`; the caller fills in all fields but key and state. 0 if another CPU was faster. */
static __always_inline struct slot *claim(__u64 key, struct counters *c)
{
	__u32 first = set_of(key) * WAYS;
	struct slot *slot = find_slot(key);

	if (slot) {
		/* The kernel has reused the bio: the completion of its former request was not seen. */
		if (slot->state == SLOT_ISSUED || slot->state == SLOT_DATA_DONE) {
			/* Counted for the request's device: the bio may now be used for another one. */
			struct counters *owner = count(slot->device);

			owner->hidden[group_of(slot->cmd_flags) & (GROUPS - 1)]++;
			emit_hidden(slot, &owner->reuses_ring_full);
		}
		goto fresh;
	}
#pragma unroll
	for (int way = 0; way < WAYS; way++) {
		slot = &slots[(first + way) & (SLOTS - 1)];
		if (!slot->key && !__sync_val_compare_and_swap(&slot->key, 0, key))
			goto fresh;
	}
	/* All taken: bios that ended without a request leave their slots. */
	slot = &slots[first & (SLOTS - 1)];
#pragma unroll
	for (int way = 1; way < WAYS; way++) {
		struct slot *other = &slots[(first + way) & (SLOTS - 1)];
		if (other->queued_ns < slot->queued_ns)
			slot = other;
	}
	__u64 old = slot->key;
	if (slot->state != SLOT_QUEUED)
		c->evicted++;
	if (__sync_val_compare_and_swap(&slot->key, old, key) != old)
		return 0;
fresh:
	slot->state = SLOT_QUEUED;
	slot->inserted_ns = 0;
	slot->issued_ns = 0;
	return slot;
}
