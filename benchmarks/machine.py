"""Describe the machine: what a reader needs to know to interpret the figures."""

import os
import platform
import subprocess
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from statistics import median


def facts(scratch: Path, peer: Path | None) -> dict[str, str | float | int]:
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "cores": len(os.sched_getaffinity(0)),
        "processor": _processor(),
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "load": round(os.getloadavg()[0], 2),
        "fsync_ms": round(_fsync(scratch), 3),
        "peer": _version(peer) if peer else "none",
        "bytecode": "taken out of the environment" if "PYTHONDONTWRITEBYTECODE" in os.environ else "not set",
    }


def described(machine: Mapping[str, str | float | int]) -> str:
    told = (
        f"Measured on {machine['date']} with {machine['python']} on {machine['cores']} cores "
        f"({machine['processor']}, {machine['system']}). Writing 4 KiB to the disk and waiting for it took "
        f"{machine['fsync_ms']} ms; before the measurement the machine's load was {machine['load']}. "
        f"All of it took {machine['minutes']} min. "
        f"Bytecode was compiled beforehand (PYTHONDONTWRITEBYTECODE was {machine['bytecode']})."
    )
    if machine["peer"] != "none":
        told += f" The peer is {machine['peer']}."
    busy = float(machine["load"]) > float(machine["cores"]) / 2
    return f"{told} **The machine was busy: only the CPU times can be trusted.**" if busy else told


def _version(peer: Path) -> str:
    asked = "import platform; from importlib.metadata import version; " + (
        "print('hermes-agent', version('hermes-agent'), 'with Python', platform.python_version())"
    )
    return subprocess.run([peer, "-c", asked], check=True, capture_output=True, text=True).stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _fsync(scratch: Path) -> float:
    """Measure milliseconds, the median of fifty. Almost zero means that the disk is memory, which flatters
    SQLite."""
    found = []
    with (scratch / "fsync").open("wb", buffering=0) as file:
        for _ in range(50):
            file.write(bytes(4096))
            begun = time.perf_counter()
            os.fsync(file.fileno())
            found.append((time.perf_counter() - begun) * 1000)
    return median(found)
