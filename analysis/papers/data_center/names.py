"""Names of the studies of the shared data center, of their variants and classes.

The studies are `studies/data-center/data-center-*.yml`; names here are without the prefix. This module is the
only place that repeats names of the YAML.

A variant that ends in `-Nmib` has another size of what the paper leaves open: of the database's buffers, such
as `browsing-class3-32mib`, or of the memory for hot files, such as `class1-behind-class0-hot-4mib`.
"""

import re
from typing import NamedTuple

#: The prefix of the studies, and the folder of claims and figures in the results.
PREFIX = "data-center"
#: The studies.
ACCESS, FILES, STATIC, DYNAMIC = "access", "files", "static", "dynamic"
LOCALITY, POLLUTION = "locality", "pollution"
HYBRID, HYBRID_TABLES, HYBRID_NETWORK, LIMITS = "hybrid", "hybrid-tables", "hybrid-network", "limits"
#: `dynamic` and `hybrid-tables` with enough repetitions for a few per cent, and `static` on a network of the
#: paper's speed.
LONG, LONG_TABLES, NETWORK = "long", "long-tables", "network"
#: What each of them is about, and whether it is the paper's or goes on from it.
STUDIES = {
    ACCESS: "Table 2",
    FILES: "Tables 4, 5 and 6",
    STATIC: "Figs. 5a, 6a and 7a",
    NETWORK: "section 4.2",
    DYNAMIC: "Table 1, Figs. 5b, 6b, 7b and 8",
    LONG: "Figs. 7b and 8",
    LOCALITY: "Fig. 9",
    POLLUTION: "Fig. 10",
    HYBRID: "Fig. 11a",
    HYBRID_TABLES: "Figs. 11b, 12 and 13",
    LONG_TABLES: "Figs. 11b, 12 and 13",
    HYBRID_NETWORK: "Fig. 14",
    LIMITS: "beyond the paper",
}

#: File systems. On a network: without a cache at the client, and with one.
EXT4, TMPFS, DIRECT, CACHED, GLUSTER = "ext4", "tmpfs", "moosefs-direct", "moosefs", "glusterfs"
NETWORKED = {"direct": DIRECT, "cached": CACHED}
#: The same in Tables 2 and 4 to 6, where stripes of 64 KiB decide.
STRIPED_DIRECT, STRIPED_CACHED = "cephfs-striped-direct", "cephfs-striped"
STRIPED = {"direct": STRIPED_DIRECT, "cached": STRIPED_CACHED}
#: What stands for which file system of the paper.
STANDS_FOR = {
    EXT4: "ext3fs",
    TMPFS: "ramfs",
    DIRECT: "PVFS",
    CACHED: "Lustre",
    STRIPED_DIRECT: "PVFS",
    STRIPED_CACHED: "Lustre",
}
#: File systems as readers see them, in the order of figures.
LABELS = {
    EXT4: "ext4 (ext3fs)",
    TMPFS: "tmpfs (ramfs)",
    DIRECT: "MooseFS, direct (PVFS)",
    CACHED: "MooseFS (Lustre)",
    STRIPED_DIRECT: "CephFS, direct (PVFS)",
    STRIPED_CACHED: "CephFS (Lustre)",
    GLUSTER: "GlusterFS",
}

#: Classes of requests, by study.
DOCUMENTS, SHOPPERS, SITE, BACKGROUND = "documents", "shoppers", "site", "background"
#: Operations of the study of access: of Table 2's rows and columns.
OPERATIONS = {
    "open-close": ("Open & close", "4K"),
    "cached-4KiB": ("Read, cached", "4K"),
    "cached-1MiB": ("Read, cached", "1M"),
    "uncached-4KiB": ("Read, not cached", "4K"),
    "uncached-1MiB": ("Read, not cached", "1M"),
}
#: Sizes of documents, small ones first.
SIZES = ("4K", "64K", "256K", "1M")
#: The number of clients of the second site, where there are one or two.
SECOND_CLIENTS = "clients.second"
#: Mixes of TPC-W.
MIXES = ("browsing", "shopping", "ordering")
PLAIN, HOT = "plain", "hot"
#: Where the disks' server has a share for each site.
RESERVED = "reserved"
#: The exponent of popularity at which the paper's text begins.
GIVEN_ALPHA = 0.75
#: The class of the background behind which tables are compared.
BEHIND = "class3"
#: Settings of what the paper leaves open, as claims have them: of a variant without a size.
BUFFERS, HOT_FILES = "8 MiB of buffers", "16 MiB hot"
_SIZED = re.compile(r"(.+?)(?:-(\d+)mib)?")


class Shared(NamedTuple):
    """A variant of two sites: whose throughput is looked at, behind whom, and where its hot files are.

    Attributes:
        site: the class of the second site.
        background: that of the first one; empty if it has none.
        placement: plain, hot, or a limit on the background.
        setting: how much memory its hot files have.
    """

    site: str
    background: str
    placement: str
    setting: str = HOT_FILES


def document(size: str, filesystem: str, *, cached: bool) -> str:
    """The variant of documents of a size, on a file system of one disk or of several servers."""
    where = "local" if filesystem in (EXT4, TMPFS) else "servers"
    return f"{size}-{'cached' if cached else 'uncached'}-{where}"


def mix_and_class(variant: str) -> tuple[str, str]:
    """The mix and the size of the database of a variant such as `browsing-class0`."""
    mix, _, size = _sized(variant)[0].partition("-")
    return mix, size


def buffers(variant: str) -> str:
    """The setting of the database's buffers of a variant."""
    size = _sized(variant)[1]
    return f"{size} MiB of buffers" if size else BUFFERS


def _sized(variant: str) -> tuple[str, str | None]:
    """A variant without its size in MiB, and the size."""
    found = _SIZED.fullmatch(variant)
    return (found[1], found[2]) if found else (variant, None)


def alpha(variant: str) -> float | None:
    """The exponent of popularity in a variant such as `alpha-0.75` or `alpha-0.75-hot`; None without one."""
    found = re.match(r"alpha-([0-9.]+)", variant)
    return float(found[1]) if found else None


def shared(variant: str) -> Shared:
    """The parts of a variant such as `class1-behind-class0-hot`, `alpha-0.90-plain` or `memory-limited`.

    A placement that is neither plain nor hot (a limit on the background) has the whole name.
    """
    name, size = _sized(variant)
    setting = f"{size} MiB hot" if size else HOT_FILES
    for placement in (PLAIN, HOT):
        if name == placement:
            return Shared(SITE, BACKGROUND, placement, setting)
        if name.endswith(f"-{placement}"):
            site, _, background = name.removesuffix(f"-{placement}").partition("-behind-")
            return Shared(site, background, placement, setting)
    return Shared(SITE, BACKGROUND, variant)
