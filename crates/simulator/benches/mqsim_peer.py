"""The flash model beside MQSim (Tavakkol et al., FAST 2018): the same device, cells and statistics.

Usage: mqsim_peer.py MQSIM [CELL ...], where MQSIM is the folder of MQSim's source with its binary.
Exit code 1 if a cell misses the criterion.
"""

import argparse
import json
import math
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
OURS = ROOT / "target/release/examples/validate_flash"

CHANNELS, CHIPS, BLOCKS, PAGES, PAGE_BYTES = 8, 2, 256, 64, 4096
READ_NS, PROGRAM_NS, ERASE_NS = 50_000, 300_000, 2_000_000
CHANNEL_MB_S = 1000
DIES = CHANNELS * CHIPS
#: Share of the flash that has no address. With 0.2, MQSim loses requests and its queue grows without end at a
#: load of 30 %.
RESERVED = 0.3
#: MQSim collects garbage below so many erased blocks.
POOL_BLOCKS = 12
#: Open blocks of MQSim: for data, copies, and the map, which is not written here.
OPEN_BLOCKS = 3
CAPACITY_BYTES = DIES * int(BLOCKS * PAGES * 8 * (1 - RESERVED)) // 8 * PAGE_BYTES

#: A chip of MQSim is busy so much longer, with command cycles and the setup of the transfer (NV-DDR2).
READ_COMMAND_NS, PROGRAM_COMMAND_NS, ERASE_COMMAND_NS = 320, 361, 220
#: The link is no bottleneck: 4 lanes of 8 GB/s, of which 28 in 156 bytes are headers.
LANES, LANE_GB_S = 4, 8.0
LINK_MB_S = LANES * LANE_GB_S * 1000 * 128 / 156

MOST_MEAN, MOST_TAIL = 0.10, 0.20


@dataclass(frozen=True)
class Cell:
    """A workload: closed loop of `depth`, or Poisson arrivals every `gap_ns` on average."""

    name: str
    read_percent: int
    kib: int = 4
    sequential: bool = False
    depth: int = 1
    gap_ns: int = 0
    #: Whether writes complete when they are in a buffer of as many pages as there are dies, or in the flash.
    buffered: bool = False
    #: Requests before those that are counted, in MQSim. A steady state of writes takes many; with few, the
    #: flash has erased blocks for all writes.
    warm_up: int = 20_000
    requests: int = 100_000

    @property
    def is_steady(self) -> bool:
        """Whether garbage is collected."""
        return self.warm_up >= CAPACITY_BYTES // PAGE_BYTES


def at_load(load: float) -> int:
    """Gap of random reads that use so much of all dies, each for a read and a transfer."""
    return round((READ_NS + PAGE_BYTES * 1000 / CHANNEL_MB_S) / DIES / load)


#: Pages that are written before the steady state of random writes is measured: six times all of them, so that
#: one in 400 was never written. The device is empty before.
WRITTEN = CAPACITY_BYTES // PAGE_BYTES * 6
#: Gaps of random writes in steady state that use 30 and 60 % of the dies. Each takes 0.75 ms: a program,
#: 1.07 copies, and its part of an erase.
STEADY_GAPS_NS = [round(750_000 / DIES / load) for load in (0.30, 0.60)]

CELLS = (
    Cell("random read, depth 1", 100),
    Cell("random read, depth 4", 100, depth=4),
    Cell("random read, depth 32", 100, depth=32),
    Cell(
        "sequential read of 128 KiB, depth 1", 100, kib=128, sequential=True, warm_up=2_000, requests=10_000
    ),
    Cell(
        "sequential read of 128 KiB, depth 4",
        100,
        kib=128,
        sequential=True,
        depth=4,
        warm_up=2_000,
        requests=10_000,
    ),
    Cell("random read, Poisson, 30 %", 100, gap_ns=at_load(0.30)),
    Cell("random read, Poisson, 60 %", 100, gap_ns=at_load(0.60)),
    Cell("random read, Poisson, 85 %", 100, gap_ns=at_load(0.85), requests=400_000),
    Cell("random write, fresh, depth 1", 0, warm_up=5_000, requests=50_000),
    Cell("random write, fresh, depth 32", 0, depth=32, warm_up=5_000, requests=50_000),
    Cell(
        "random write, fresh, buffered, depth 32", 0, depth=32, buffered=True, warm_up=5_000, requests=50_000
    ),
    Cell("70 % read, fresh, depth 4", 70, depth=4, warm_up=5_000, requests=50_000),
    Cell("70 % read, fresh, depth 32", 70, depth=32, warm_up=5_000, requests=50_000),
    Cell("random write, steady, depth 1", 0, warm_up=WRITTEN, requests=200_000),
    Cell(
        "random write, steady, Poisson, 30 %", 0, gap_ns=STEADY_GAPS_NS[0], warm_up=WRITTEN, requests=200_000
    ),
    Cell(
        "random write, steady, Poisson, 60 %", 0, gap_ns=STEADY_GAPS_NS[1], warm_up=WRITTEN, requests=200_000
    ),
)


@dataclass(frozen=True)
class Found:
    """Response times, requests per second, and pages programmed per page of the host (of writes)."""

    mean_us: float
    p99_us: float
    per_s: float
    amplification: float | None
    #: Requests that were never answered, with those of the warm-up.
    lost: int = 0


def tags(values: dict) -> str:
    """Values as XML elements; a dictionary is an element with elements."""
    return "".join(
        f"<{name}>{tags(value) if isinstance(value, dict) else value}</{name}>\n"
        for name, value in values.items()
    )


def device(has_log: bool) -> str:
    """MQSim's configuration of the device."""
    cells = {
        f"Page_{what}_Latency_{bit}": ns
        for what, ns in (("Read", READ_NS), ("Program", PROGRAM_NS))
        for bit in ("LSB", "CSB", "MSB")
    }
    flash = {
        "Flash_Technology": "SLC",
        "CMD_Suspension_Support": "NONE",
        **cells,
        "Block_Erase_Latency": ERASE_NS,
        "Block_PE_Cycles_Limit": 1_000_000,
        "Suspend_Erase_Time": 0,
        "Suspend_Program_Time": 0,
        "Die_No_Per_Chip": 1,
        "Plane_No_Per_Die": 1,
        "Block_No_Per_Plane": BLOCKS,
        "Page_No_Per_Block": PAGES,
        "Page_Capacity": PAGE_BYTES,
        "Page_Metadat_Capacity": 0,
    }
    host = {
        "PCIe_Lane_Bandwidth": LANE_GB_S,
        "PCIe_Lane_Count": LANES,
        "SATA_Processing_Delay": 0,
        "Enable_ResponseTime_Logging": "true" if has_log else "false",
        "ResponseTime_Logging_Period_Length": 0,
    }
    drive = {
        "Seed": 321,
        "Enabled_Preconditioning": "false",
        "Memory_Type": "FLASH",
        "HostInterface_Type": "NVME",
        "IO_Queue_Depth": 65535,
        "Queue_Fetch_Size": 65535,
        "Caching_Mechanism": "ADVANCED",
        "Data_Cache_Sharing_Mode": "SHARED",
        "Data_Cache_Capacity": 64 * PAGE_BYTES,
        "Data_Cache_DRAM_Row_Size": 8192,
        "Data_Cache_DRAM_Data_Rate": 6400,
        "Data_Cache_DRAM_Data_Busrt_Size": 8,
        "Data_Cache_DRAM_tRCD": 1,
        "Data_Cache_DRAM_tCL": 1,
        "Data_Cache_DRAM_tRP": 1,
        "Address_Mapping": "PAGE_LEVEL",
        "Ideal_Mapping_Table": "true",
        "CMT_Capacity": 1 << 26,
        "CMT_Sharing_Mode": "SHARED",
        "Plane_Allocation_Scheme": "CWDP",
        "Transaction_Scheduling_Policy": "OUT_OF_ORDER",
        "Overprovisioning_Ratio": RESERVED,
        "GC_Exec_Threshold": (POOL_BLOCKS + 0.5) / BLOCKS,
        "GC_Block_Selection_Policy": "GREEDY",
        # With copies within the die MQSim crashes, with garbage collection that yields to requests it stops.
        "Use_Copyback_for_GC": "false",
        "Preemptible_GC_Enabled": "false",
        "GC_Hard_Threshold": 0,
        "Dynamic_Wearleveling_Enabled": "false",
        "Static_Wearleveling_Enabled": "false",
        "Static_Wearleveling_Threshold": 1_000_000,
        "Preferred_suspend_erase_time_for_read": 0,
        "Preferred_suspend_erase_time_for_write": 0,
        "Preferred_suspend_write_time_for_read": 0,
        "Flash_Channel_Count": CHANNELS,
        "Flash_Channel_Width": 1,
        "Channel_Transfer_Rate": CHANNEL_MB_S,
        "Chip_No_Per_Channel": CHIPS,
        "Flash_Comm_Protocol": "NVDDR2",
        "Flash_Parameter_Set": flash,
    }
    parameters = {"Host_Parameter_Set": host, "Device_Parameter_Set": drive}
    return '<?xml version="1.0" encoding="us-ascii"?>\n' + tags({"Execution_Parameter_Set": parameters})


def workload(cell: Cell, requests: int) -> str:
    """MQSim's configuration of a cell."""
    flow = {
        "Priority_Class": "HIGH",
        "Device_Level_Data_Caching_Mode": "WRITE_CACHE" if cell.buffered else "TURNED_OFF",
        "Channel_IDs": ",".join(map(str, range(CHANNELS))),
        "Chip_IDs": ",".join(map(str, range(CHIPS))),
        "Die_IDs": 0,
        "Plane_IDs": 0,
        "Initial_Occupancy_Percentage": 100,
        "Working_Set_Percentage": 100,
        "Synthetic_Generator_Type": "BANDWIDTH" if cell.gap_ns else "QUEUE_DEPTH",
        "Read_Percentage": cell.read_percent,
        "Address_Distribution": "STREAMING" if cell.sequential else "RANDOM_UNIFORM",
        "Percentage_of_Hot_Region": 0,
        "Generated_Aligned_Addresses": "true",
        "Address_Alignment_Unit": cell.kib * 2,
        "Request_Size_Distribution": "FIXED",
        "Average_Request_Size": cell.kib * 2,
        "Variance_Request_Size": 0,
        "Seed": 798,
        "Average_No_of_Reqs_in_Queue": cell.depth,
        "Bandwidth": math.ceil(1e9 / cell.gap_ns) * cell.kib * 1024 if cell.gap_ns else 0,
        "Stop_Time": 0,
        "Total_Requests_To_Generate": requests,
    }
    scenario = {"IO_Scenario": {"IO_Flow_Parameter_Set_Synthetic": flow}}
    return '<?xml version="1.0" encoding="us-ascii"?>\n' + tags({"MQSim_IO_Scenarios": scenario})


def run_mqsim(
    binary: Path, cell: Cell, requests: int, folder: Path, has_log: bool = True
) -> tuple[list[tuple[int, int]], int, int]:
    """Completion and response time of each request in us, pages copied, and requests without an answer."""
    (folder / "device.xml").write_text(device(has_log))
    (folder / "workload.xml").write_text(workload(cell, requests))
    command = [binary.resolve(), "-i", "device.xml", "-w", "workload.xml"]
    done = subprocess.run(command, cwd=folder, input="\n", capture_output=True, text=True)
    log = folder / "workload.IO_Flow.No_0.log"
    counts = re.search(r"requests generated: (\d+) total requests serviced:(\d+)", done.stdout)
    results = folder / "workload_scenario_1.xml"
    if done.returncode or not counts or not log.exists() or not results.exists():
        sys.exit(
            f"{binary}: cell `{cell.name}` failed with exit code {done.returncode}: "
            f"{done.stdout[-400:]}{done.stderr[-400:]}"
        )
    lines = (line.split() for line in log.read_text().splitlines()[1:])
    times = [(int(done_us), int(delay_us)) for done_us, _, delay_us in lines]
    ftl = next(node for node in ElementTree.parse(results).iter() if "Total_GC_Executions" in node.attrib)
    runs, moved = int(ftl.get("Total_GC_Executions", 0)), float(ftl.get("Average_Page_Movement_For_GC", 0))
    return times, round(runs * moved) if runs else 0, int(counts[1]) - int(counts[2])


def percentile(times: list[int]) -> float:
    """99th percentile of whole us, which MQSim has cut off."""
    return sorted(times)[len(times) * 99 // 100] + 0.5


def mqsim(binary: Path, cell: Cell, folder: Path) -> Found:
    """The cell in MQSim, without its warm-up."""
    times, copied, lost = run_mqsim(binary, cell, cell.warm_up + cell.requests, folder)
    counted = times[-cell.requests * len(times) // (cell.warm_up + cell.requests) :]
    delays = [delay for _, delay in counted]
    elapsed_us = counted[-1][0] - counted[0][0]
    amplification = None
    if cell.is_steady:
        _, copied_before, _ = run_mqsim(binary, cell, cell.warm_up, folder, has_log=False)
        amplification = 1 + (copied - copied_before) / cell.requests
    # Requests that complete at the same time share a line.
    per_s = cell.requests / elapsed_us * 1e6
    return Found(sum(delays) / len(delays) + 0.5, percentile(delays), per_s, amplification, lost)


def profile(cell: Cell) -> dict:
    """Our profile of the device."""
    units = -(-CAPACITY_BYTES // PAGE_BYTES // DIES)
    # Blocks that garbage collection chooses from, when it is due.
    full = BLOCKS - OPEN_BLOCKS - (POOL_BLOCKS - 1)
    return {
        "kind": "ssd",
        "description": "the device of the comparison with MQSim",
        "channels": CHANNELS,
        "page_kib": PAGE_BYTES // 1024,
        "read_latency_us": (READ_NS + READ_COMMAND_NS) / 1000,
        "write_latency_us": (PROGRAM_NS + PROGRAM_COMMAND_NS) / 1000,
        "channel_mb_s": CHANNEL_MB_S,
        "command_overhead_us": 0,
        "flash": {
            "dies_per_channel": CHIPS,
            # A chip of MQSim takes no command while it holds a page for the channel.
            "cache_register": False,
            "block_kib": PAGES * PAGE_BYTES // 1024,
            "erase_ms": (ERASE_NS + ERASE_COMMAND_NS) / 1e6,
            "over_provisioning_percent": round(((full - 1) * PAGES / units - 1) * 100, 3)
            if cell.is_steady
            else 200,
            "start": "steady" if cell.is_steady else "written",
            "write_buffer_kib": DIES * PAGE_BYTES // 1024 if cell.buffered else 0,
            "interface_mb_s": round(LINK_MB_S),
        },
    }


def weir(cell: Cell, folder: Path) -> Found:
    """The cell in the flash model, in steady state if it has writes."""
    file = folder / "profile.yml"
    file.write_text(json.dumps(profile(cell)))
    arguments = [
        file,
        CAPACITY_BYTES,
        cell.read_percent,
        cell.kib,
        int(cell.sequential),
        cell.depth,
        cell.gap_ns,
    ]
    command = [str(word) for word in (OURS, *arguments, cell.requests)]
    return Found(**json.loads(subprocess.check_output(command, text=True)))


def main() -> int:
    """Prints a line for each cell; 1 if one misses the criterion."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mqsim", type=Path, help="folder of MQSim's source, with its binary MQSim")
    parser.add_argument("cells", nargs="*", help="cells whose names contain one of these words; all without")
    options = parser.parse_args()
    binary = options.mqsim / "MQSim"
    if not binary.is_file():
        print(f"{binary}: not found. Build MQSim with `make` in {options.mqsim}", file=sys.stderr)
        return 2
    chosen = [cell for cell in CELLS if not options.cells or any(word in cell.name for word in options.cells)]
    print("| cell | MQSim: mean, p99, requests/s, write amplification | weir | differences | |")
    print("| --- | --- | --- | --- | --- |")
    missed = 0
    for cell in chosen:
        with tempfile.TemporaryDirectory() as folder:
            theirs = mqsim(binary, cell, Path(folder))
            ours = weir(cell, Path(folder))
        is_within = True
        texts = []
        for name, most in (
            ("mean_us", MOST_MEAN),
            ("p99_us", MOST_TAIL),
            ("per_s", MOST_MEAN),
            ("amplification", MOST_MEAN),
        ):
            pair = getattr(theirs, name), getattr(ours, name)
            if pair[0] is None or pair[1] is None:
                continue
            difference = pair[1] / pair[0] - 1
            is_within &= abs(difference) <= most
            texts.append(f"{difference * 100:+.1f} %")
        missed += not is_within
        figures = [
            f"{found.mean_us:.1f} us, {found.p99_us:.1f} us, {found.per_s:,.0f}"
            + (f", {found.amplification:.2f}" if found.amplification else "")
            + (f" ({found.lost} lost)" if found.lost else "")
            for found in (theirs, ours)
        ]
        print(
            f"| {cell.name} | {figures[0]} | {figures[1]} | {', '.join(texts)} "
            f"| {'within' if is_within else '**not**'} |",
            flush=True,
        )
    print(f"\n{len(chosen) - missed} of {len(chosen)} cells are within the criterion.")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
