/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* Types shared by block.bpf.c and its loader. Times are ns of CLOCK_MONOTONIC; 0 if not known. */
#ifndef WEIR_BLOCK_H
#define WEIR_BLOCK_H

#define MAX_DEVICES 8
#define MAX_CPUS 512
#define COMM_BYTES 16

/* Table of outstanding requests: SETS * WAYS slots, one cache line each. */
#define SETS 8192
#define WAYS 4
#define SLOTS (SETS * WAYS)

/* Groups of /sys/block/DEV/stat (enum stat_group of the kernel). */
enum group { GROUP_READ, GROUP_WRITE, GROUP_DISCARD, GROUP_FLUSH, GROUPS };

enum recording { RECORDING_OFF, RECORDING_ON, RECORDING_DRAIN };

enum event_kind { EVENT_COMPLETED, EVENT_HIDDEN, EVENT_NAME };

/* One request; EVENT_NAME: the name of task `pid` from `issued_ns` on, in the bytes of the first two times. */
struct block_event {
	__u64 queued_ns;
	__u64 inserted_ns;
	__u64 issued_ns;
	__u64 completed_ns;
	__u64 sector;
	__u64 cgroup;
	__u32 bytes;
	__u32 cmd_flags;
	__u32 pid;
	__u16 priority;
	__u8 device;
	__u8 status; /* blk_status_t */
	__u64 kind;
};

/*
 * Completed requests go to user space through one ring for each CPU, in memory that both map: only one program writes it, and no
 * program interrupts itself on its CPU, so that no lock is needed. Both numbers only grow.
 */
struct ring {
	__u64 written; /* events, by the program */
	__u64 taken;   /* events, by the loader */
} __attribute__((aligned(128)));

enum slot_state { SLOT_QUEUED, SLOT_ISSUED, SLOT_FRONT_MERGED, SLOT_DATA_DONE };

/*
 * State of a request between its bio's arrival and its completion: one cache line. The key is its first bio, or the request
 * itself if it has none (the block layer's own flush).
 */
struct slot {
	__u64 key; /* 0: free */
	__u64 queued_ns;
	__u64 inserted_ns;
	__u64 issued_ns;
	__u64 sector;
	__u64 cgroup;
	__u32 bytes;
	__u32 cmd_flags;
	__u32 pid;
	__u16 priority;
	__u8 device;
	__u8 state;
};

/* Tasks whose names the loader knows, by pid: cache lines that all CPUs read and that seldom change. */
#define NAMES 4096
struct named {
	__u64 task_start; /* distinguishes a reused pid */
	__u64 pid;        /* 0: none */
};

/*
 * Per device and CPU. Each field is written by one program only, and a program cannot interrupt itself on its
 * CPU, so plain increments are exact.
 */
struct counters {
	__u64 bios_queued;
	__u64 issued;
	__u64 completed[GROUPS]; /* finished, in the kernel's own statistics */
	__u64 sectors[GROUPS];
	__u64 completed_uncounted; /* finished, but outside the kernel's statistics (pass-through, iostats=0) */
	__u64 driver_completions;  /* completions of requests issued to the driver */
	__u64 before_start;        /* completed, but begun before the recording */
	__u64 after_stop;          /* completed while draining, but begun after the recording ended */
	__u64 arrival_unknown;     /* issued while recording, but its arrival was not seen */
	__u64 arrival_unknown_at_end; /* completed while recording, but neither arrival nor issue was seen */
	__u64 completions_ring_full; /* completions that found the ring of their CPU full */
	__u64 reuses_ring_full;    /* hidden completions whose event found the ring buffer full */
	__u64 evicted;             /* slots overwritten because their set was full */
	__u64 hidden[GROUPS];      /* found by the reuse of the bio: the completion was not seen */
	__u64 requeued;
	__u64 bio_back_merges;
	__u64 bio_front_merges;
	__u64 request_merges;
	__u64 splits;
} __attribute__((aligned(128))); /* CPUs must not share cache lines, nor adjacent-line prefetch pairs */

#endif
