/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Names of tasks, sent to the loader. Part of block.bpf.c. */

/* Names are sent once, not with every request: reading one costs as much as everything else. */
static __always_inline __u32 tell_name(__u64 now_ns)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 pid = task->pid;
	struct named *known = &named[pid & (NAMES - 1)];
	__u64 comm[COMM_BYTES / 8];

	if (known->pid == pid && known->task_start == task->start_time)
		return pid;
	bpf_get_current_comm(comm, sizeof(comm));
	struct block_event *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	if (!e)
		return pid; /* not stored: sent with the next request */
	__builtin_memset(e, 0, sizeof(*e));
	e->queued_ns = comm[0];
	e->inserted_ns = comm[1];
	e->issued_ns = now_ns;
	e->pid = pid;
	e->kind = EVENT_NAME;
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	known->task_start = task->start_time;
	known->pid = pid;
	return pid;
}

/* Renamed by exec or by the task: the new name is sent with the next request. */
SEC("tp_btf/task_rename")
int BPF_PROG(task_rename, struct task_struct *task)
{
	__u32 pid = task->pid;
	struct named *known = &named[pid & (NAMES - 1)];

	if (known->pid == pid)
		known->pid = 0;
	return 0;
}
