"""Reviews as rows: what set them off, how far they are, what they took and what they changed."""

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

from hone.app import Hone
from hone.cli.listing import moment
from hone.cli.render import WIDE, total
from hone.core.ids import SessionId
from hone.core.jobs import Job, State, Topics
from hone.core.ledger import NO_SESSION
from hone.core.model import Usage
from hone.core.visible import one_line
from hone.runtime.claims import FOLDER

TITLES = ("id", "when", "session", "about", "state", "tokens", "cached", "cost", "changes", "why")
RIGHT = frozenset({"id", "tokens", "cached", "cost"})
AT_WORK = "at work"


@dataclass(frozen=True, slots=True)
class Report:
    """`usage` is what each call of its last try took; `waiting` is how many of its changes wait."""

    job: Job
    working: bool = False
    usage: tuple[Usage, ...] = ()
    waiting: int = 0

    @property
    def state(self) -> str:
        return AT_WORK if self.working else self.job.state

    @property
    def cached(self) -> float | None:
        """The share of its first request that the provider had in its cache."""
        first = self.usage[0] if self.usage else None
        if self.job.cached is not None or first is None or not first.input:
            return self.job.cached
        return first.cached / first.input


async def reports(hone: Hone, jobs: Sequence[Job]) -> list[Report]:
    """Of the jobs of one conversation that are queued, the oldest is the one that is worked on."""
    pending = {entry.id for entry in await hone.library.keeper.ledger.pending()}
    oldest: dict[SessionId, Job] = {}
    for job in await hone.jobs.waiting():
        oldest.setdefault(job.tree, job)
    found = []
    for job in jobs:
        first = oldest.get(job.tree)
        working = first is not None and first.id == job.id and is_claimed(hone.home, job.tree)
        spent = await hone.sessions.spending(job.review) if job.review != NO_SESSION else ()
        waiting = len(pending.intersection(job.changes))
        found.append(Report(job, working, tuple(each.usage for each in spent), waiting))
    return found


def is_claimed(home: Path, name: str) -> bool:
    """Whether some process holds the lock. A file that a killed one left behind is held by nobody."""
    with suppress(OSError):
        handle = os.open(home / FOLDER / f"{name}.lock", os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(handle)
    return False


def table(found: Sequence[Report], width: int = WIDE) -> str:
    rows = [_cells(each) for each in found]
    widths = [max(len(row[column]) for row in (TITLES, *rows)) for column in range(len(TITLES) - 1)]
    room = max(20, width - sum(widths) - 2 * len(widths))
    lines = [_row(TITLES, widths, room)]
    for report, row in zip(found, rows, strict=True):
        lines.append(_row(row, widths, room))
        if report.job.error:
            lines += _below(report.job.error, widths[0] + 2, width)
    return "\n".join(lines)


def _below(words: str, indent: int, width: int) -> list[str]:
    room = max(40, width - indent)
    return [" " * indent + row for row in wrap(one_line(words, 500), room, break_on_hyphens=False)]


def _row(row: Sequence[str], widths: Sequence[int], room: int) -> str:
    cells = [
        cell.rjust(size) if title in RIGHT else cell.ljust(size)
        for title, cell, size in zip(TITLES, row, widths, strict=False)
    ]
    return "  ".join((*cells, one_line(row[-1], room))).rstrip()


def _cells(report: Report) -> tuple[str, ...]:
    job, spent = report.job, total(report.usage)
    return (
        str(job.id),
        moment(job.created),
        one_line(job.session, 12),
        about(job.topics, "+"),
        report.state,
        f"{spent.input + spent.output:,}" if report.usage else "",
        percent(report.cached),
        _cost(report.usage),
        _changes(report),
        job.why,
    )


def about(topics: Topics, joint: str = " and ") -> str:
    return joint.join(sorted(topics))


def percent(share: float | None) -> str:
    return "" if share is None else f"{int(100 * share)} %"


def _cost(usage: Sequence[Usage]) -> str:
    from hone.cli.render import price

    return price(total(usage).cost).removeprefix("cost ") if usage else ""


def _changes(report: Report) -> str:
    made = str(len(report.job.changes)) if report.job.state is State.DONE else ""
    return f"{made}, {report.waiting} wait{'s' if report.waiting == 1 else ''}" if report.waiting else made


def heading(report: Report) -> Iterator[str]:
    """One review by itself: its first line, and what else there is to know about it."""
    job = report.job
    yield f"Review {job.id} of session {one_line(job.session, 40)}: {report.state}"
    tries = (f"{job.tries} tries",) if job.tries > 1 else ()
    cause = f"{about(job.topics)}, {one_line(job.why, 60)}"
    yield " · ".join((moment(job.created), cause, f"{job.messages:,} messages", *tries))
    if job.error:
        yield one_line(job.error, 500)


def data(report: Report) -> dict[str, Any]:
    """For programs."""
    job, spent = report.job, total(report.usage)
    return {
        "id": job.id,
        "session": job.session,
        "messages": job.messages,
        "topics": sorted(job.topics),
        "why": job.why,
        "state": report.state,
        "tries": job.tries,
        "created": job.created.isoformat(),
        "ended": job.ended.isoformat() if job.ended else None,
        "review": job.review or None,
        "calls": len(report.usage),
        "input": spent.input,
        "cached": spent.cached,
        "output": spent.output,
        "first_request_cached": report.cached,
        "cost": spent.cost if report.usage else None,
        "changes": list(job.changes),
        "waiting": report.waiting,
        "error": job.error,
    }
