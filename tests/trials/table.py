"""What came of the suites, as rows, as JSON, and as a part of a page between two marks."""

import json
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

COMMAND = "python -m tests.trials"
SPARE = 5
"""Failures of a suite that are told one by one."""


class Unmarked(Exception):
    """The page has no place for it."""


@dataclass(frozen=True, slots=True)
class Row:
    """`failed` are tests, `replay` the command that tries again what went wrong, or all of it."""

    suite: str
    tried: int
    got_in: int
    lost: int
    seconds: float
    seed: int
    short: bool
    replay: str
    notes: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()

    @property
    def well(self) -> bool:
        return bool(self.tried) and not (self.got_in or self.lost or self.failed)


def row(suite: str, told: Sequence[dict[str, Any]], seconds: float, seed: int, *, short: bool) -> Row:
    """Of what each test of a suite has counted."""
    tallies = [tally for each in told for tally in each["tallies"]]
    failed = [each for each in told if each["failed"]]
    replays = [command for each in failed for command in each["replay"]]
    whole = [*COMMAND.split(), "--only", suite, "--seed", str(seed), *(["--short"] if short else [])]
    return Row(
        suite,
        sum(tally["tried"] for tally in tallies),
        sum(tally["got_in"] for tally in tallies),
        sum(tally["lost"] for tally in tallies),
        round(seconds, 1),
        seed,
        short,
        replays[0] if replays else shlex.join(whole),
        tuple(f"{tally['tried']:,} {tally['note']}" for tally in tallies),
        tuple(f"{each['test']}: {each['failed']}" for each in failed[:SPARE]),
    )


def markdown(rows: Iterable[Row]) -> str:
    lines = [
        "| suite | tried | got in | lost | seconds | seed | replay |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    for each in rows:
        counts = f"{each.tried:,} | {each.got_in:,} | {each.lost:,} | {each.seconds:,.0f} | {each.seed}"
        mark = " (sample)" if each.short else "" if each.well else " **failed**"
        lines.append(f"| {each.suite}{mark} | {counts} | `{each.replay}` |")
    return "\n".join(lines)


def stored(path: Path, name: str) -> dict[str, Any]:
    """What earlier runs have left there, by suite."""
    found = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return dict(found.get(name, {}))


def store(path: Path, name: str, kept: dict[str, Any]) -> None:
    whole = json.loads(path.read_text("utf-8")) if path.exists() else {}
    path.write_text(json.dumps({**whole, name: kept}, indent=1, ensure_ascii=False) + "\n", "utf-8")


def merged(path: Path, rows: Iterable[Row], order: Sequence[str]) -> list[Row]:
    """The rows of this run, and of earlier ones for the other suites; written there."""
    kept = stored(path, "suites") | {each.suite: asdict(each) for each in rows}
    kept = {name: kept[name] for name in order if name in kept}
    store(path, "suites", kept)
    return [
        Row(**{**each, "notes": tuple(each["notes"]), "failed": tuple(each["failed"])})
        for each in kept.values()
    ]


def put(page: Path, mark: str, text: str) -> None:
    """Between `<!-- mark: begin -->` and its end."""
    begin, end = f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->"
    whole = page.read_text("utf-8")
    if not 0 <= whole.find(begin) < whole.find(end):
        raise Unmarked(f"{page} has no {begin} … {end}.")
    before, after = whole[: whole.find(begin) + len(begin)], whole[whole.find(end) :]
    page.write_text(f"{before}\n{text}\n{after}", "utf-8")
