"""How things are measured: the sides take turns, so that whatever else the machine does hits all alike."""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import mkdtemp

from benchmarks.figures import Row, Side, Unit
from benchmarks.provider import Provider

ROOT = Path(__file__).parents[1]
HONE = Path(sys.executable).with_name("hone")
PEER = ROOT / ".venv-peer" / "bin" / "python"
"""Where `make peer` installs the peer's Python."""
CONFIG = """\
model:
  default: scripted
  provider: custom
  base_url: {url}/v1
  api_key: none
  context_length: 1000000
security:
  allow_lazy_installs: false
  tirith_enabled: false
"""
"""The place and the context length of the peer's model. Everything that would download more is off."""
UNREVIEWED = "memory: {nudge_interval: 0}\nskills: {creation_nudge_interval: 0}\n"
"""Without reviews, which would run during the measurement. They are measured separately."""


@dataclass(frozen=True, slots=True)
class Bench:
    """How much of everything, where to write, whom to report progress to, and the peer's Python, if any."""

    scratch: Path
    tell: Callable[[int, int], None]
    runs: int = 5
    turns: int = 10
    calls: int = 10
    peer: Path | None = None
    quick: bool = False

    def folder(self) -> Path:
        return Path(mkdtemp(dir=self.scratch))


@dataclass(frozen=True, slots=True)
class Sample:
    """A figure, its CPU milliseconds, and the share of one core that the provider used in that time.

    `other` is a second figure of the same measurement, if there is one.
    """

    value: float
    cpu: float = 0.0
    provider: float = 0.0
    other: float = 0.0


Take = Callable[[], Sample]
Samples = Mapping[Side, Sequence[Sample]]
Command = Sequence[str | Path]


def alternate(
    bench: Bench, runs: int, takes: Mapping[Side, Take], most: int | None = None, warm: bool = False
) -> Samples:
    """Measure A B C A B C …, after one of each that does not count, unless the previous row has warmed up
    everything.

    The peer only takes part in the first `most` rounds: otherwise it would take too long.
    """
    if not warm:
        for take in takes.values():
            take()
    found: dict[Side, list[Sample]] = {side: [] for side in takes}
    for number in range(1, runs + 1):
        for side, take in takes.items():
            if side != "peer" or most is None or number <= most:
                found[side].append(take())
        bench.tell(number, runs)
    return found


def row(
    name: str,
    unit: Unit,
    aim: float | None,
    samples: Samples,
    lead: float | None = None,
    point: tuple[str, float] | None = None,
) -> Row:
    values = {side: tuple(each.value for each in some) for side, some in samples.items()}
    cpu = {side: median(each.cpu for each in some) for side, some in samples.items()}
    busy = {side: median(each.provider for each in some) for side, some in samples.items()}
    return Row(
        name,
        unit,
        values["hone"],
        values.get("floor", ()),
        aim,
        {side: used for side, used in cpu.items() if used},
        {side: share for side, share in busy.items() if share},
        values.get("peer", ()),
        lead,
        point,
    )


def working(
    bench: Bench,
    provider: Provider,
    job: str,
    amounts: Mapping[str, int],
    peer: Mapping[str, int] | None = None,
) -> dict[Side, Take]:
    """Measure the same job of `benchmarks.work` for every side; `peer` has its amounts if they differ."""
    takes: dict[Side, Take] = {
        "hone": partial(work, bench, provider, "hone", job, amounts),
        "floor": partial(work, bench, provider, "floor", job, amounts),
    }
    if bench.peer:
        takes["peer"] = partial(work, bench, provider, "peer", job, {**amounts, **(peer or {})})
    return takes


def work(
    bench: Bench, provider: Provider, side: Side, job: str, amounts: Mapping[str, int], settings: str = ""
) -> Sample:
    """Run one measurement in a separate process and home."""
    home = bench.folder()
    python: str | Path = sys.executable
    environ = environment(home, provider.url)
    if side == "peer":
        python = bench.peer or python
        environ |= lodged(Path(python), home, provider.url, UNREVIEWED)
    else:
        (home / "hone.toml").write_text(settings)
    command = [python, "-m", "benchmarks.work", side, job, "--url", provider.url, "--home", home]
    command += [part for name, amount in amounts.items() for part in (f"--{name}", str(amount))]
    provider.notes()
    done = json.loads(play(command, environ, ROOT).splitlines()[-1])
    notes = provider.notes()
    busy = notes.cpu * 1e9 / max(1, notes.arrivals[-1].at - notes.arrivals[0].at)
    return Sample(done["value"], done["cpu"], busy, done["other"])


def processor() -> float:
    """Return CPU milliseconds of all processes that we have waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1000


def play(command: Command, environ: Mapping[str, str], folder: Path) -> bytes:
    done = subprocess.run(
        command, env=environ, cwd=folder, check=False, stdin=subprocess.DEVNULL, capture_output=True
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stderr.decode()}")
    return done.stdout


def environment(home: Path, url: str = "") -> dict[str, str]:
    """Return an environment without the caller's variables: no keys, no proxies, no
    PYTHONDONTWRITEBYTECODE."""
    own = {"PATH": os.environ.get("PATH", ""), "HOME": str(home), "LANG": "C.UTF-8", "HONE_HOME": str(home)}
    own["HONE_LEARNING"] = "queue"  # nothing else runs during the measurement
    own["HONE_LOCAL"] = "false"  # the scripted provider stands for a remote one
    if not url:
        return own
    keys = {"OPENAI_API_KEY": "none", "ANTHROPIC_API_KEY": "none"}
    places = {"OPENAI_BASE_URL": f"{url}/v1", "ANTHROPIC_BASE_URL": url, "HONE_MODEL": "openai/scripted"}
    return own | keys | places


def lodged(python: Path, home: Path, url: str, settings: str = "") -> dict[str, str]:
    """Make a home for the peer that names its provider, and return its environment.

    It has just checked for a newer version, and does not ask PyPI again. Its own folder is first on PATH, as
    when it is activated: it starts `python3`, which may be a slow shim elsewhere.
    """
    (home / "config.yaml").write_text(CONFIG.format(url=url) + settings)
    [installed] = python.parent.parent.glob("lib/*/site-packages/hermes_agent-*.dist-info")
    checked = {
        "ts": time.time(),
        "behind": 0,
        "rev": None,
        "ver": installed.name.split("-")[1].removesuffix(".dist"),
    }
    (home / ".update_check").write_text(json.dumps(checked))
    return {"HERMES_HOME": str(home), "PATH": f"{python.parent}{os.pathsep}{os.environ.get('PATH', '')}"}
