"""`python -m benchmarks.imports`: how fast `hone import` brings in very many messages, no two alike."""

import argparse
import json
import resource
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.bench import HONE
from benchmarks.recall import Language

COUNT, TURNS, MESSAGES = 50_000, 25, 4
"""A turn is a question, a call, its result and the answer."""
FASTEST = 5_000
"""The target in messages per second."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.imports", description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT, help="messages [%(default)s]")
    options = parser.parse_args()
    with TemporaryDirectory(prefix="hone-bench-") as scratch:
        print(measured(Path(scratch), options.count))


def measured(folder: Path, count: int) -> str:
    made = fill(folder / "there" / "projects", count)
    command = [
        str(HONE),
        "--home",
        str(folder / "home"),
        "import",
        "claude-code",
        str(folder / "there"),
        "--yes",
    ]
    begun, before = time.perf_counter(), processor()
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    wall, busy = time.perf_counter() - begun, processor() - before
    if f"{made:,} messages to add" not in told:
        raise SystemExit(told)
    return (
        f"{made:,} messages in {wall:.1f} s: {made / wall:,.0f} messages/s, start-up and all "
        f"({made / busy:,.0f} a second of the processor; aim: {FASTEST:,})"
    )


def processor() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def fill(folder: Path, count: int) -> int:
    folder.mkdir(parents=True)
    language, talks = Language(3), max(1, count // (TURNS * MESSAGES))
    for number in range(talks):
        rows = (json.dumps(row) for row in conversation(f"session-{number}", language))
        (folder / f"{number}.jsonl").write_text("\n".join(rows))
    return talks * TURNS * MESSAGES


def conversation(name: str, language: Language) -> Iterator[dict[str, Any]]:
    parent: str | None = None
    for turn in range(TURNS):
        call = f"toolu_{turn}"
        for place, (kind, block) in enumerate(
            (
                ("user", {"type": "text", "text": language.message()}),
                ("assistant", {"type": "text", "text": language.message()}),
                (
                    "assistant",
                    {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "pytest"}},
                ),
                ("user", {"type": "tool_result", "tool_use_id": call, "content": language.message()}),
                ("assistant", {"type": "text", "text": language.message()}),
            )
        ):
            uuid = f"{name}-{turn}-{place}"
            yield {
                **{"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": name, "cwd": "/work"},
                **{"timestamp": f"2026-01-01T10:{turn:02}:{place:02}Z", "isSidechain": False},
                "message": {"role": kind, "content": [block]},
            }
            parent = uuid


if __name__ == "__main__":
    main()
