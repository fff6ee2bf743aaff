"""What the options of a fio job mean to weir: those without effect, and those that are lost, by reason."""

#: Options that leave the requests as they are, by reason.
_NO_EFFECT = {
    "name of the job": "name",
    "reporting and logs": (
        "group_reporting new_group per_job_logs write_bw_log write_lat_log write_iops_log write_hist_log "
        "write_iolog log_entries log_avg_msec log_hist_msec log_hist_coarseness log_window_value log_offset "
        "log_prio log_issue_time log_compression log_compression_cpus log_store_compressed "
        "log_alternate_epoch log_alternate_epoch_clock_id block_error_percentiles bwavgtime iopsavgtime "
        "stats clat_percentiles lat_percentiles slat_percentiles percentile_list significant_figures "
        "disk_util gtod_reduce disable_lat disable_clat disable_slat disable_bw_measurement gtod_cpu "
        "clocksource unified_rw_reporting error_dump kb_base unit_base job_start_clock_id comm"
    ),
    "CPU, memory and process of the load generator": (
        "thread cpumask cpus_allowed cpus_allowed_policy numa_cpu_nodes numa_mem_policy nice mem "
        "iomem_align lockmem hugepage-size uid gid thinktime_spin fixedbufs registerfiles sqthread_poll "
        "sqthread_poll_cpu nonvectored userspace_reap"
    ),
    "weir has a seed of its own (`seed` of the study)": "randrepeat randseed random_generator",
    "weir writes the files before each run and drops the caches": (
        "create_serialize create_fsync create_on_open allow_file_create allow_mounted_write fallocate "
        "overwrite unlink unlink_each_loop opendir openfiles filetype"
    ),
    "kept by the map of random blocks": "softrandommap",
}
NO_EFFECT_REASON = {name: reason for reason, names in _NO_EFFECT.items() for name in names.split()}

#: By what weir does instead: options that are lost, unless they have a value after `=`, which change nothing.
_LOST = {
    "weir submits each request by itself": "iodepth_batch=1",
    "weir takes each completion by itself": ("iodepth_batch_complete_min=0,1 iodepth_batch_complete_max=0,1"),
    "weir refills the queue after each completion": "iodepth_low",
    "requests to the same place may overlap": "serialize_overlap=0",
    "weir submits from the client itself": "io_submit_mode=inline",
    "a class of closed loops has one file": "file_service_type",
    "sequential requests follow each other": "rw_sequencer=sequential",
    "each trim has one range": "num_range=0,1",
    "sizes are multiples of 512 bytes": "bs_unaligned=0",
    "reads and writes have one distribution of sizes": "bs_is_seq_rand=0",
    "offsets are multiples of the request size": "offset_align=0",
    "a run has a duration, no number of requests": "number_ios=0",
    "writes are random over the whole file": "sprandom=0 spr_num_regions spr_op",
    "random requests are independent": "random_sequence_stride=0",
    "no request waits for a flush": "fdatasync=0 fsync=0 write_barrier=0 sync_file_range",
    "writes are not synchronous (O_SYNC)": "sync=0,none",
    "no flush ends a run": "end_fsync=0 end_syncfs=0 fsync_on_close=0",
    "weir gives the kernel no other hint": "fadvise_hint=1",
    "writes are not atomic": "atomic=0",
    "nothing is read back; `weir verify` checks results, not data": "verify=0,none",
    "requests are sent in any case": "verify_only=0 create_only=0",
    "nothing is trimmed": "trim_percentage=0",
    "`weir replay` sends the requests of a log": "read_iolog",
    "no command is executed": "exec_prerun exec_postrun",
    "requests are not restricted to zones": (
        "zonemode=none zonesize=0 zonerange=0 zonecapacity=0 zoneskip=0 max_open_zones=0"
    ),
    "requests have no hint": "priohint=0",
    "a pause uses no CPU": "thinkcycles=0",
    "each request is followed by the pause": "thinktime_blocks=1 thinktime_iotime=0",
    "pauses follow completions": "thinktime_blocks_type=complete",
    "a slow run is not aborted": "rate_min=0 rate_iops_min=0",
    "requests have equal gaps": "rate_process=linear",
    "the rate is kept over the whole run": "rate_cycle=1000",
    "pauses count as time of the rate": "rate_ignore_thinktime=0",
    "a slow request does not end the run": "max_latency=0",
    "the depth is fixed": "latency_target=0 latency_window=0 latency_percentile latency_run=0",
    "writes have no hint": "write_hint=none",
    "no file is cached; `hold.warm_start` of a study does that": "pre_read=0 invalidate=1",
    "all classes run to the end": "exitall=0 exit_what",
    "a failed request makes the run invalid": "exitall_on_error=0 continue_on_error=0,none ignore_error",
    "classes of a run start together; make a study of its own of it": "wait_for",
    "weir writes content of its own": (
        "zero_buffers=0 refill_buffers=0 scramble_buffers=1 buffer_pattern "
        "buffer_compress_percentage=0 buffer_compress_chunk dedupe_percentage=0 dedupe_mode "
        "dedupe_working_set_percentage dedupe_global=0"
    ),
    "the options of a profile are not read": "profile",
    "`cgroup` of the class takes settings such as io.weight=100": "cgroup cgroup_weight",
    "control groups are removed": "cgroup_nodelete=0",
    "the shares of jobs are not regulated": "flow=0 flow_id flow_sleep=0 flow_watermark",
    "a run has a fixed duration; `precision` of a study sets the repetitions": (
        "steadystate steadystate_duration steadystate_ramp_time steadystate_check_interval"
    ),
    "writes have no placement": "dataplacement=none fdp=0",
    "no log is replayed": "replay_redirect",
    "a run does not end when the device is full": "fill_device=0",
    "completions are not polled for": "hipri=0",
    "a request that would block waits": "nowait=0",
    "requests pass the page cache or not, as `hold.buffered` says": "uncached=0",
    "io_uring decides which requests its workers send": "force_async=0",
    "clients do not lock the file": "lockfile=none",
    "writes are within the file": "file_append=0",
    "all requests of a class have one priority": (
        "cmdprio_percentage=0 cmdprio_class cmdprio cmdprio_bssplit"
    ),
}
LOST_UNLESS = {
    name: (tuple(neutral.split(",")) if neutral else (), text)
    for text, names in _LOST.items()
    for name, _, neutral in (one.partition("=") for one in names.split())
}
