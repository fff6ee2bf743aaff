/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* Types shared by files.bpf.c and its loader. Times are ns of CLOCK_MONOTONIC. */
#ifndef WEIR_FILES_H
#define WEIR_FILES_H

#define MAX_SYSCALLS 512
#define MAX_URING_OPS 256

enum file_source { SOURCE_SYSCALL, SOURCE_IO_URING, SOURCE_FUSE };

enum file_op { FILE_OP_NONE, FILE_OP_READ, FILE_OP_WRITE, FILE_OP_FSYNC };

/* One request on a file. */
struct file_event {
	__u64 start_ns;
	__u64 end_ns;
	__u64 inode;
	__u64 fs_magic; /* s_magic of the super block */
	__s64 result;   /* bytes, or a negative errno */
	__u64 size_bytes; /* requested size; 0 if the source does not have it */
	__u32 pid;
	__u32 tgid;
	__u32 op;     /* enum file_op */
	__u32 source; /* enum file_source */
};

struct file_counters {
	__u64 started;
	__u64 ended;
	__u64 ring_full;
	__u64 map_full;
};

#endif
