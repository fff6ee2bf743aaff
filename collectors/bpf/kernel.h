/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * Kernel types that the programs read, by name only: every access is relocated against the running kernel's BTF when the
 * program is loaded. Neither vmlinux.h nor kernel headers are needed.
 */
#ifndef WEIR_KERNEL_H
#define WEIR_KERNEL_H
/* For bpf_tracing.h: registers have the kernel's names. */
#define __VMLINUX_H__

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

/* Of enum bpf_map_type and enum bpf_*_flags (include/uapi/linux/bpf.h). */
enum { BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_RINGBUF = 27 };
enum { BPF_ANY = 0, BPF_NOEXIST = 1 };
enum { BPF_RB_NO_WAKEUP = 1 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kernfs_node {
	__u64 id;
};

struct cgroup {
	struct kernfs_node *kn;
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
};

struct blkcg {
	struct cgroup_subsys_state css;
};

struct blkcg_gq {
	struct blkcg *blkcg;
};

struct gendisk {
	int major;
	int first_minor;
};

struct block_device {
	struct gendisk *bd_disk;
};

struct bio {
	struct bio *bi_next;
	struct block_device *bi_bdev;
	unsigned int bi_opf;
	void *bi_private;
	unsigned short bi_ioprio;
	void *bi_io_vec;
	struct blkcg_gq *bi_blkg;
};

struct request_queue {
	struct gendisk *disk;
};

struct request {
	struct request_queue *q;
	unsigned int cmd_flags;
	unsigned int rq_flags;
	unsigned int __data_len;
	__u64 __sector;
	struct bio *bio;
	__u64 start_time_ns;
	__u64 io_start_time_ns;
};

enum req_flag_bits {
	__REQ_FUA = 17,
	__REQ_PREFLUSH = 18,
};

struct task_struct {
	int pid;
	int tgid;
	__u64 start_time;
	char comm[16];
	struct files_struct *files;
};

struct super_block {
	unsigned long s_magic;
};

struct inode {
	struct super_block *i_sb;
	unsigned long i_ino;
};

struct file {
	struct inode *f_inode;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct io_kiocb {
	struct file *file;
	__u8 opcode;
};

struct io_uring_cqe {
	__s32 res;
};

struct fuse_in_header {
	__u32 len;
	__u32 opcode;
	__u64 nodeid;
	__u32 pid;
};

struct fuse_out_header {
	__u32 len;
	__s32 error;
};

struct fuse_req {
	struct {
		struct fuse_in_header h;
	} in;
	struct {
		struct fuse_out_header h;
	} out;
};

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	__u64 regs[31];
	__u64 sp;
	__u64 pc;
	__u64 pstate;
};
struct pt_regs {
	__u64 orig_x0;
};
#endif

#pragma clang attribute pop

#endif
