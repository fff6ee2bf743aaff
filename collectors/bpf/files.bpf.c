/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * File requests, for file systems without a block device: system calls, io_uring and FUSE, of one process and its
 * descendants. Only tp_btf programs.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
#include "files.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* enum file_op by system call number and by io_uring opcode; the loader fills them in. */
const volatile __u8 syscall_ops[MAX_SYSCALLS] = {};
const volatile __u8 uring_ops[MAX_URING_OPS] = {};

struct file_counters file_counters = {};

struct begun {
	__u64 start_ns;
	__u64 fd;
	__u64 size_bytes;
	__u32 pid;
	__u32 tgid;
	__u32 op;
};

#define UNDER_WAY 16384

/* Processes to follow, by tgid. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u32);
} followed SEC(".maps");

/* By thread. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, UNDER_WAY);
	__type(key, __u64);
	__type(value, struct begun);
} syscalls SEC(".maps");

/* By address of the kernel's request: those of io_uring and FUSE differ. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, UNDER_WAY);
	__type(key, __u64);
	__type(value, struct begun);
} requests SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20); /* the loader sets the real size */
} file_events SEC(".maps");

static __always_inline int is_followed(__u32 tgid)
{
	return bpf_map_lookup_elem(&followed, &tgid) != 0;
}

static __always_inline void begin(void *map, __u64 key, struct begun *b)
{
	__sync_fetch_and_add(&file_counters.started, 1);
	if (bpf_map_update_elem(map, &key, b, BPF_ANY))
		__sync_fetch_and_add(&file_counters.map_full, 1);
}

static __always_inline void end(struct begun *b, __u64 inode, __u64 fs_magic, __s64 result, __u64 size, __u32 source)
{
	__u64 now = bpf_ktime_get_ns();
	struct file_event *e = bpf_ringbuf_reserve(&file_events, sizeof(*e), 0);

	__sync_fetch_and_add(&file_counters.ended, 1);
	if (!e) {
		__sync_fetch_and_add(&file_counters.ring_full, 1);
		return;
	}
	e->start_ns = b->start_ns;
	e->end_ns = now;
	e->inode = inode;
	e->fs_magic = fs_magic;
	e->result = result;
	e->size_bytes = size;
	e->pid = b->pid;
	e->tgid = b->tgid;
	e->op = b->op;
	e->source = source;
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(process_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 parent_tgid = parent->tgid, child_tgid = child->tgid, one = 1;

	if (parent_tgid != child_tgid && is_followed(parent_tgid) &&
	    bpf_map_update_elem(&followed, &child_tgid, &one, BPF_ANY))
		__sync_fetch_and_add(&file_counters.map_full, 1);
	return 0;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(syscall_enter, struct pt_regs *regs, long number)
{
	if (number < 0 || number >= MAX_SYSCALLS)
		return 0;
	__u32 op = syscall_ops[number & (MAX_SYSCALLS - 1)];
	__u64 thread = bpf_get_current_pid_tgid();
	if (!op || !is_followed(thread >> 32))
		return 0;
	struct begun b = {
		.fd = PT_REGS_PARM1_CORE_SYSCALL(regs),
		.size_bytes = op == FILE_OP_FSYNC ? 0 : PT_REGS_PARM3_CORE_SYSCALL(regs),
		.pid = (__u32)thread,
		.tgid = thread >> 32,
		.op = op,
	};
	b.start_ns = bpf_ktime_get_ns();
	begin(&syscalls, thread, &b);
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(syscall_exit, struct pt_regs *regs, long result)
{
	__u64 thread = bpf_get_current_pid_tgid();
	struct begun *b = bpf_map_lookup_elem(&syscalls, &thread);

	if (!b)
		return 0;
	struct task_struct *task = bpf_get_current_task_btf();
	struct file **table = BPF_CORE_READ(task, files, fdt, fd), *file = 0;
	__u64 inode = 0, magic = 0;
	if (b->fd < BPF_CORE_READ(task, files, fdt, max_fds) &&
	    !bpf_probe_read_kernel(&file, sizeof(file), table + b->fd) && file) {
		inode = BPF_CORE_READ(file, f_inode, i_ino);
		magic = BPF_CORE_READ(file, f_inode, i_sb, s_magic);
	}
	end(b, inode, magic, result, b->size_bytes, SOURCE_SYSCALL);
	bpf_map_delete_elem(&syscalls, &thread);
	return 0;
}

SEC("tp_btf/io_uring_submit_req")
int BPF_PROG(uring_submit, struct io_kiocb *request)
{
	__u32 op = uring_ops[request->opcode];
	__u64 thread = bpf_get_current_pid_tgid();
	if (!op || !is_followed(thread >> 32))
		return 0;
	struct begun b = {.pid = (__u32)thread, .tgid = thread >> 32, .op = op};
	b.start_ns = bpf_ktime_get_ns();
	begin(&requests, (__u64)request, &b);
	return 0;
}

SEC("tp_btf/io_uring_complete")
int BPF_PROG(uring_complete, void *ring, void *request, struct io_uring_cqe *cqe)
{
	__u64 key = (__u64)request;
	struct begun *b = bpf_map_lookup_elem(&requests, &key);

	if (!b)
		return 0;
	struct file *file = BPF_CORE_READ((struct io_kiocb *)request, file);
	__u64 inode = file ? BPF_CORE_READ(file, f_inode, i_ino) : 0;
	__u64 magic = file ? BPF_CORE_READ(file, f_inode, i_sb, s_magic) : 0;
	__s64 result = cqe->res;
	end(b, inode, magic, result, result > 0 && b->op != FILE_OP_FSYNC ? result : 0, SOURCE_IO_URING);
	bpf_map_delete_elem(&requests, &key);
	return 0;
}

/* include/uapi/linux/fuse.h */
enum { FUSE_READ = 15, FUSE_WRITE = 16, FUSE_FSYNC = 20 };
#define FUSE_IN_HEADER_BYTES 40
#define FUSE_OUT_HEADER_BYTES 16
#define FUSE_WRITE_IN_BYTES 40
#define FUSE_SUPER_MAGIC 0x65735546

SEC("tp_btf/fuse_request_send")
int BPF_PROG(fuse_send, struct fuse_req *request)
{
	__u32 opcode = request->in.h.opcode;
	__u64 thread = bpf_get_current_pid_tgid();

	if (opcode != FUSE_READ && opcode != FUSE_WRITE && opcode != FUSE_FSYNC)
		return 0;
	if (!is_followed(thread >> 32))
		return 0;
	struct begun b = {
		.pid = (__u32)thread,
		.tgid = thread >> 32,
		.op = opcode == FUSE_READ ? FILE_OP_READ : opcode == FUSE_WRITE ? FILE_OP_WRITE : FILE_OP_FSYNC,
	};
	b.start_ns = bpf_ktime_get_ns();
	begin(&requests, (__u64)request, &b);
	return 0;
}

SEC("tp_btf/fuse_request_end")
int BPF_PROG(fuse_end, struct fuse_req *request)
{
	__u64 key = (__u64)request;
	struct begun *b = bpf_map_lookup_elem(&requests, &key);

	if (!b)
		return 0;
	__s64 result = request->out.h.error;
	__u64 size = 0;
	if (b->op == FILE_OP_WRITE && request->in.h.len >= FUSE_IN_HEADER_BYTES + FUSE_WRITE_IN_BYTES)
		size = request->in.h.len - FUSE_IN_HEADER_BYTES - FUSE_WRITE_IN_BYTES;
	if (b->op == FILE_OP_READ && request->out.h.len >= FUSE_OUT_HEADER_BYTES)
		size = request->out.h.len - FUSE_OUT_HEADER_BYTES;
	end(b, request->in.h.nodeid, FUSE_SUPER_MAGIC, result ? result : (__s64)size, size, SOURCE_FUSE);
	bpf_map_delete_elem(&requests, &key);
	return 0;
}
