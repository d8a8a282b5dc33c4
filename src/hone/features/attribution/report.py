"""Write an explanation as lines for people and as JSON for programs."""

from collections.abc import Iterator, Sequence
from typing import Any

from hone.core.secrets import redact
from hone.core.visible import one_line, visible
from hone.features.attribution.values import (
    Explanation,
    ItemKind,
    ItemPlace,
    JudgedItem,
    Method,
    PromptItem,
)
from hone.features.attribution.verifying import Ablation, AblationVerdict, Verification

WIDTH = 100
KINDS = {
    ItemKind.ENTRY: "journal",
    ItemKind.SKILL: "skill",
    ItemKind.TEMPLATE: "template",
    ItemKind.MEMORY: "memory",
    ItemKind.INSTRUCTIONS: "file",
    ItemKind.TEAM: "team",
}
METHODS = {
    Method.RECORD: "by record",
    Method.MEASURE: "by measure",
    Method.CITATION: "says the model",
    Method.ABLATION: "by ablation",
}


def write_lines(explanation: Explanation, *, all_items: bool = False) -> list[str]:
    """Return what shaped the answer with the commands that correct it, then how much else was in the
    prompt."""
    answer = explanation.answer
    lines = [f"Answer {answer.header.id}:{answer.number}: {one_line(answer.text, WIDTH)}", ""]
    used = explanation.used
    if used:
        lines.append("What shaped it:")
        for number, each in enumerate(used, 1):
            lines += _write(number, each)
    else:
        lines.append("Nothing that Hone knows left a trace in it.")
    rest = [each for each in explanation.items if not each.counts]
    if all_items and rest:
        lines += ["", "Also in the prompt:", *(f"  {_name(each)}{_state(each)}" for each in rest)]
    elif rest:
        place = f"{answer.header.id}:{answer.number}"
        lines += ["", f"Also in the prompt: {_count(rest)}. List them: hone why {place} --all"]
    return lines


def _write(number: int, judged: JudgedItem) -> Iterator[str]:
    yield f"  {number}. {_name(judged)}"
    how = " and ".join(METHODS[each] for each in judged.by)
    why = f": {one_line(judged.because, WIDTH)}" if judged.because else ""
    yield f"     {judged.use}, {how}{why}{_state(judged)}"
    if judged.steps:
        yield f"     {'   '.join(judged.steps)}"


def _name(judged: JudgedItem) -> str:
    return _label(judged.item)


def _label(item: PromptItem) -> str:
    if item.kind in (ItemKind.SKILL, ItemKind.TEMPLATE, ItemKind.INSTRUCTIONS):
        return f"{KINDS[item.kind]} {one_line(item.name, WIDTH)}"
    return f"{KINDS[item.kind]}, {one_line(item.name, 40)}: {one_line(item.text, WIDTH)}"


def _state(judged: JudgedItem) -> str:
    item, said = judged.item, []
    if item.place is ItemPlace.NOTE:
        said.append(f"told in message {item.message}")
    if item.place is ItemPlace.CONVERSATION and item.kind is ItemKind.ENTRY:
        said.append(f"written in message {item.message}")
    if item.withdrawn:
        said.append(f"withdrawn in message {item.withdrawn}")
    if item.kind is ItemKind.ENTRY and judged.change is None:
        said.append("no longer in the journal in these words")
    return f" ({'; '.join(said)})" if said else ""


def _count(rest: Sequence[JudgedItem]) -> str:
    names = {
        ItemKind.ENTRY: ("entry", "entries"),
        ItemKind.SKILL: ("skill", "skills"),
        ItemKind.TEMPLATE: ("template", "templates"),
        ItemKind.MEMORY: ("memory", "memories"),
        ItemKind.INSTRUCTIONS: ("trusted file", "trusted files"),
        ItemKind.TEAM: ("entry of your team", "entries of your team"),
    }
    counts = {kind: sum(each.item.kind is kind for each in rest) for kind in names}
    return ", ".join(f"{count} {names[kind][count > 1]}" for kind, count in counts.items() if count)


VERDICTS = {
    AblationVerdict.NEEDED: "needed",
    AblationVerdict.SAME: "no difference shown",
    AblationVerdict.DESPITE: "the answer comes out more often without it",
    AblationVerdict.UNTRIED: "not tried",
}


def write_verification(found: Verification) -> list[str]:
    """Return each difference in agreement with its interval, then the cost."""
    lines = ["By ablation, agreement with the answer in runs with the item and without it:"]
    for each in found.ablations:
        lines.append(f"  {_label(each.item)}")
        lines.append(f"     {VERDICTS[each.verdict]}{_figures(each)}")
    cost = f", ${found.cost:.2f}" if found.cost else ""
    lines.append(f"It took {found.runs} runs and {found.tokens:,} tokens{cost}.")
    return lines


def _figures(ablation: Ablation) -> str:
    if ablation.refused:
        return f": {ablation.refused}"
    count = len(ablation.pairs)
    having, lacking = (sum(pair[side] for pair in ablation.pairs) / count for side in (0, 1))
    low, high = ablation.bounds
    apart = f"{100 * ablation.difference:+.0f} points, {100 * low:+.0f} to {100 * high:+.0f}"
    return f": {having:.0%} with it, {lacking:.0%} without it in {count} pairs ({apart})"


def verification_data(found: Verification) -> dict[str, Any]:
    rows = [
        {
            "kind": each.item.kind,
            "name": each.item.name,
            "text": redact(each.item.text),
            "verdict": each.verdict,
            "refused": each.refused,
            "pairs": [list(pair) for pair in each.pairs],
            "difference": each.difference,
            "interval": list(each.bounds),
        }
        for each in found.ablations
    ]
    return {"ablations": rows, "runs": found.runs, "tokens": found.tokens, "cost": found.cost}


def to_data(explanation: Explanation) -> dict[str, Any]:
    """Return every item for programs. Those that shaped the answer come first."""
    answer = explanation.answer
    return {
        "session": answer.header.id,
        "message": answer.number,
        "model": answer.prefix.model,
        "request": redact(visible(answer.request.text)),
        "answer": redact(visible(answer.text)),
        "items": [_item(each) for each in explanation.items],
    }


def _item(judged: JudgedItem) -> dict[str, Any]:
    item, brought = judged.item, judged.brought
    return {
        "kind": item.kind,
        "name": item.name,
        "text": redact(item.text),
        "place": item.place,
        "came_with": item.message or None,
        "withdrawn_with": item.withdrawn or None,
        "use": judged.use,
        "by": list(judged.by),
        "score": judged.score,
        "because": redact(judged.because),
        "change": judged.change,
        "target": judged.target or None,
        "actor": brought.change.author.actor if brought else None,
        "at": brought.at.isoformat() if brought else None,
        "confirmed": brought.change.confirmed if brought else None,
        "pinned": judged.pinned,
        "steps": list(judged.steps),
    }
