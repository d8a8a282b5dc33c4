"""Reviews as rows: what set them off, how far they are, what they took and what they changed."""

from collections.abc import Iterator, Sequence
from textwrap import wrap

from hone.cli.listing import moment
from hone.cli.render import WIDE
from hone.core.jobs import State, Topics
from hone.core.model import Usage, total
from hone.core.visible import one_line
from hone.learning.reports import Report, data, reports

__all__ = ["Report", "about", "data", "heading", "percent", "reports", "table"]

TITLES = ("id", "when", "session", "about", "state", "tokens", "cached", "cost", "changes", "why")
RIGHT = frozenset({"id", "tokens", "cached", "cost"})


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
