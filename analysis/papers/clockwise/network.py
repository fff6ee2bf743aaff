"""The network card, and disks beside it (4.4, 4.5, 7.4; Figs. 4.19, 7.11)."""

import numpy as np

from papers.clockwise import pci, source
from papers.clockwise.source import MB

#: 4.4: the line rate that is reached, and what of a cell is the user's.
LINE_BIT_S = 149.9e6
CELL_BYTES, CELL_PAYLOAD_BYTES, TRAILER_BYTES = 53, 48, 8
#: A circuit's ring has two entries. An entry's turn, from the packet that takes it to the interrupt that
#: frees it, is fitted to the 18,000 packets of 48 bytes a second; the thesis does not say on how many
#: circuits they were sent.
RING_ENTRIES = 2
SMALL_BYTES, SMALL_PER_S = 48, 18_000
#: Section 4.5 counts 2^20 bits to a Mb: only so are its shares met.
SHARE_MBIT = 2**20
#: Bursts of the devices of Fig. 7.11: bytes that a card moves at once.
BURST_BYTES = {"ncr810": 64, "ncr875": 512, "oppo receives": 64, "oppo sends": 256}
#: What a burst of a card that sends costs beside its bytes: 1,536 bytes, six bursts, take 14.7 us (4.5).
OPPO_READ_SETUP_NS = 14_700 / (1536 / 256) - 256 * pci.BYTE_NS


def cells(packet_bytes: np.ndarray) -> np.ndarray:
    """ATM cells of an AAL5 packet."""
    return np.ceil((np.asarray(packet_bytes, dtype=float) + TRAILER_BYTES) / CELL_PAYLOAD_BYTES)


def _line_s(packet_bytes: np.ndarray) -> np.ndarray:
    """A packet's time on the line."""
    return cells(packet_bytes) * CELL_BYTES * 8 / LINE_BIT_S


def sent_mbit_s(packet_bytes: np.ndarray, circuits: int) -> np.ndarray:
    """Rate of the user's bits on so many circuits, in 10^6 a second: what rings allow, and what the line.

    An entry is taken for its turn and for the packet's time on the line.
    """
    line_s = _line_s(packet_bytes)
    turn_s = RING_ENTRIES / SMALL_PER_S - _line_s(np.array(SMALL_BYTES))
    packets = np.minimum(RING_ENTRIES * circuits / (turn_s + line_s), 1 / line_s)
    return packets * np.asarray(packet_bytes, dtype=float) * 8 / 1e6


def bus_share_pct(size_bytes: int, burst_ns: float) -> float:
    """Share of the PCI bus in % of a device that moves so many bytes in this time, at the network's rate."""
    return source.NETWORK_MBIT_S * SHARE_MBIT / 8 / size_bytes * burst_ns * 1e-9 * 100


def _moved_ns(packet_bytes: int, burst_bytes: int, *, reads_memory: bool, card: str) -> float:
    """Time on PCI of a packet: full bursts and what is left in one more."""
    full, rest = divmod(packet_bytes, burst_bytes)
    sizes = [burst_bytes] * full + ([rest] if rest else [])
    if not reads_memory:
        return sum(pci.write_ns(size, card) for size in sizes)
    setup_ns = OPPO_READ_SETUP_NS if card == "oppo" else pci.READ_SETUP_NS
    return sum(setup_ns + pci.BYTE_NS * size for size in sizes)


def combined_ns(packet_bytes: int, direction: str, card: str) -> float:
    """Time on PCI of a packet that goes from network to disk ("record") or from disk to network ("play")."""
    if direction == "record":
        network = _moved_ns(packet_bytes, BURST_BYTES["oppo receives"], reads_memory=False, card="oppo")
        return network + _moved_ns(packet_bytes, BURST_BYTES[card], reads_memory=True, card=card)
    network = _moved_ns(packet_bytes, BURST_BYTES["oppo sends"], reads_memory=True, card="oppo")
    return network + _moved_ns(packet_bytes, BURST_BYTES[card], reads_memory=False, card=card)


def combined_mb_s(packet_bytes: int, direction: str, card: str) -> float:
    """Throughput of network and disk together, in MB/s of packets that pass both."""
    return packet_bytes / combined_ns(packet_bytes, direction, card) * 1e9 / MB
