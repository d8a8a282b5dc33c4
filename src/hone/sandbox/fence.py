"""A cell as rules for Landlock: for machines without bubblewrap. It needs no program and no namespace.

The command sees the whole tree of files and their names, but opens only what the cell has. Nothing can be
taken away inside a folder that is allowed: a cell with something sealed or hidden in it does not hold here.
Of /etc it opens what any user may open: to many programs a file that is there and refused is an error.
"""

from collections.abc import Sequence

from hone.core.value import dataclass
from hone.sandbox.bubblewrap import NOBODY
from hone.sandbox.spec import DEVICES, PROCESSES, SYSTEM, Launch, SandboxSpec, check, limits, owned

_FACTS = (
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/uptime", "/proc/loadavg", "/proc/version"),
    *("/proc/filesystems", "/proc/sys/kernel", "/proc/sys/vm", "/sys/devices/system/cpu"),
)


@dataclass(frozen=True, slots=True)
class LandlockFence:
    drop: bool

    def wrap(self, argv: Sequence[str], cell: SandboxSpec) -> Launch:
        check(cell)
        trees = [str(path) for path in owned(cell)]
        readable = (*SYSTEM, "/etc", *_FACTS, *(str(path) for path in (*cell.readable, *cell.sealed)))
        settings = [("folder", str(cell.folder)), *limits(), ("limit", f"RLIMIT_NPROC={PROCESSES}")]
        settings += [("read", path) for path in readable]
        settings += [("write", path) for path in trees]
        settings += [("device", path) for path in DEVICES]
        if cell.network:
            settings.append(("network", "yes"))
        if self.drop:
            settings += [("drop", str(NOBODY)), *(("own", path) for path in trees)]
        return Launch("landlock", tuple(argv), tuple(settings), str(cell.scratch or cell.folder))
