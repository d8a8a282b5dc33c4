"""Show the results of an experiment as a table, as JSON, or as a chart."""

from collections.abc import Iterator
from html import escape
from typing import Any

import msgspec

from hone.cli.drawing import framed
from hone.core.visible import one_line
from hone.features.experiments.findings import Finding, points, signed
from hone.features.experiments.statistics import SUCCESS, TOKENS, Difference
from hone.features.experiments.values import Arm, EffectVerdict, Run, Study

TITLES = ("", "with", "without", "difference", "95% interval")
WIDTH, LABELS, VALUES, ROW, TOP = 860, 220, 200, 34, 64
SCALE = (WIDTH - LABELS - VALUES) / 2
MIDDLE = LABELS + SCALE


def title(study: Study) -> str:
    count = f"{len(study.paired)} of {study.pairs} pairs"
    return one_line(f"{study.task} with and without {study.lesson}, {study.model}, {count}", 500)


def table(finding: Finding) -> Iterator[str]:
    """Yield aligned lines."""
    yield title(finding.study)
    yield ""
    rows = [TITLES, *map(_cells, finding.differences)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(TITLES))]
    for name, *cells in rows:
        aligned = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        yield "  ".join((name.ljust(widths[0]), *aligned)).rstrip()
    yield ""
    yield sentence(finding)
    yield _spent(finding.study)


def sentence(finding: Finding) -> str:
    """Describe the decision, and its basis."""
    decision = finding.decision
    counted = f"{decision.wins} succeeded only with it, {decision.losses} only without it"
    if not finding.is_over:
        return f"Nothing is decided yet. Of {decision.pairs} pairs, {counted}."
    if finding.verdict is EffectVerdict.UNDECIDED:
        return f"Undecided: of {decision.pairs} pairs, {counted}. More pairs may decide: --pairs"
    said = "It helps" if finding.verdict is EffectVerdict.HELPS else "It harms"
    return f"{said}: of the first {decision.pairs} pairs, {counted}."


def _spent(study: Study) -> str:
    seconds, tokens = sum(run.seconds for run in study.runs), sum(run.tokens for run in study.runs)
    costs = [run.cost for run in study.runs if run.cost is not None]
    cost = f", ${sum(costs):,.2f}" if costs and len(costs) == len(study.runs) else ""
    return f"It took {len(study.runs)} runs, {tokens:,} tokens{cost}, {seconds:,.0f} s."


def _cells(each: Difference) -> tuple[str, str, str, str, str]:
    if not each.pairs:
        return each.name, "–", "–", "–", "no pair has it"
    show = {SUCCESS: _points, TOKENS: _count}.get(each.name, _number)
    plain = _share if each.name == SUCCESS else _amount
    span = f"{show(each.low).removesuffix(' points')} to {show(each.high)}"
    return each.name, plain(each.having), plain(each.lacking), show(each.mean), span


def _share(value: float) -> str:
    return f"{100 * value:.0f}%"


def _points(value: float) -> str:
    return f"{points(value)} points"


def _count(value: float) -> str:
    return signed(round(value))


def _amount(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"


def _number(value: float) -> str:
    shown = _amount(abs(value))
    sign = "" if not shown.strip("0.") else "+" if value > 0 else "−"
    return f"{sign}{shown}"


def data(finding: Finding) -> dict[str, Any]:
    """Return every figure and every run, for programs."""
    study = finding.study
    return {
        "experiment": study.task,
        "kind": study.lesson.kind,
        "lesson": study.lesson.name,
        "digest": study.lesson.digest,
        "model": study.model,
        "begun": study.begun.isoformat(),
        "pairs": study.pairs,
        "complete": finding.is_over,
        "verdict": finding.verdict,
        "differences": [
            {
                "name": each.name,
                "pairs": each.pairs,
                "with": each.having if each.pairs else None,
                "without": each.lacking if each.pairs else None,
                "difference": each.mean if each.pairs else None,
                "interval": [each.low, each.high] if each.pairs else None,
            }
            for each in finding.differences
        ],
        "runs": [_run_data(each) for each in study.runs],
    }


def picture(finding: Finding) -> str:
    """Draw a dot for each difference and a line for its interval, each on its own scale around zero."""
    shown = [each for each in finding.differences if each.pairs]
    height = TOP + ROW * len(shown) + 10
    drawn = [f'<text class="heading" x="0" y="18">{escape(title(finding.study))}</text>']
    drawn += [
        f'<text class="value" x="{LABELS}" y="{TOP - 22}">less {Arm.WITH} it</text>',
        f'<text class="value" x="{LABELS + 2 * SCALE:.0f}" y="{TOP - 22}" text-anchor="end">more</text>',
        f'<line class="axis" x1="{MIDDLE}" y1="{TOP - 16}" x2="{MIDDLE}" y2="{height - 4}"/>',
    ]
    for number, each in enumerate(shown):
        drawn += _drawn(each, TOP + ROW * number + ROW // 2)
    return framed(WIDTH, height, title(finding.study), _told(finding), drawn)


def _drawn(each: Difference, y: int) -> Iterator[str]:
    most = max(abs(each.low), abs(each.high), abs(each.mean)) or 1.0
    low, mean, high = (MIDDLE + value / most * (SCALE - 8) for value in (each.low, each.mean, each.high))
    name, _, _, difference, span = _cells(each)
    clear = not each.low <= 0 <= each.high
    yield f'<text x="0" y="{y + 4}">{escape(name)}</text>'
    yield f'<line class="{"clear" if clear else "span"}" x1="{low:.1f}" y1="{y}" x2="{high:.1f}" y2="{y}"/>'
    yield f'<circle class="{"hone" if clear else "floor"}" cx="{mean:.1f}" cy="{y}" r="5"/>'
    value = f"{difference.removesuffix(' points')} ({span.removesuffix(' points')})"
    yield f'<text class="value" x="{WIDTH - VALUES + 10}" y="{y + 4}">{escape(value)}</text>'


def _told(finding: Finding) -> str:
    said = (f"{name}: {apart}, {span}." for name, _, _, apart, span in map(_cells, finding.differences))
    return " ".join((*said, sentence(finding)))


def _run_data(run: Run) -> dict[str, Any]:
    """Return a run for JSON. Only a run on a held-out task names the task."""
    told: dict[str, Any] = msgspec.to_builtins(run)
    return told if run.task else {name: value for name, value in told.items() if name != "task"}
