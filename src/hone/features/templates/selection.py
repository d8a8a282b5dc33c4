"""Choose the calls of a session that form a template, and the template that fits a new session.

These are pure functions.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct

from hone.core.messages import ToolCall, ToolResult, canonical
from hone.core.permit import Effect
from hone.core.tool import ToolKind, ToolSpec
from hone.core.transcript import Node
from hone.core.trust import Trust
from hone.core.value import replace
from hone.core.visible import visible
from hone.features.templates.classes import classify, kind_of, succeeded
from hone.features.templates.values import Example, Template, WorkKind

MOST = 10
"""The most examples of a template."""
LONGEST = 1_000
"""The most characters of a result, or of one value among the arguments."""
SHORT = 120
"""The most characters of such a value in a call made after foreign text was read."""
KNOWLEDGE = frozenset({Effect.NOTE, Effect.SKILL, Effect.SPAWN})
"""Knowledge has its own place, where it can be withdrawn, and a child is no example."""
_KNOWING = ("memory", "skills_list", "skill_view", "skill_manage", "session_search", "delegate", "todo")
"""The same by name, plus quotations and plans: none of it shows how to work."""

Clean = Callable[[str], str]


class Pair(Struct, frozen=True):
    """A call and its result, each with its label."""

    call: ToolCall
    said: Trust
    result: ToolResult
    trust: Trust


def happened(lines: Iterable[Sequence[Node]]) -> list[Node]:
    """Return everything that was said, once, over the lines of a session, without examples of another
    template."""
    nodes = (node for line in lines for node in line if not node.message.template)
    return list({node.digest: node for node in nodes}.values())


def called(nodes: Iterable[Node]) -> list[str]:
    """Return the names of the tools, once for each call: notes on a conversation may repeat one."""
    calls = dict.fromkeys(call for node in nodes for call in node.message.calls)
    return [call.name for call in calls]


def pairs(nodes: Iterable[Node]) -> Iterator[Pair]:
    """Yield each call with its own result, in the order of the calls. A call or result without its
    counterpart is left out, and so is a second result of a call."""
    asked: dict[str, tuple[int, ToolCall, Trust]] = {}
    found: list[tuple[int, Pair]] = []
    number = 0
    for node in nodes:
        for call in node.message.calls:
            asked[call.id] = (number, call, node.trust)
            number += 1
        result = node.message.result
        if result and result.call in asked:
            place, call, said = asked.pop(result.call)
            found.append((place, Pair(call, said, result, node.trust)))
    yield from (pair for _, pair in sorted(found, key=lambda each: each[0]))


def extract(
    nodes: Sequence[Node],
    specs: Mapping[str, ToolSpec],
    clean: Clean,
    is_odd: Callable[[str], bool],
    *,
    work: WorkKind | None = None,
    most: int = MOST,
) -> tuple[WorkKind, tuple[Example, ...]]:
    """Return the kind of work, and the calls that succeeded: first those of that kind, and some of each tool.
    Anything that looks like an order to its reader is left out."""
    declared = {name: spec.kind for name, spec in specs.items()}
    work = work or classify(called(nodes), declared)
    good = (each for each in pairs(nodes) if succeeded(each.result) and _shows_work(each.call, specs))
    examples = [_example(each, clean) for each in good]
    fit = [each for each in examples if not is_odd(f"{each.arguments}\n{each.result}")]
    unlike = list({(each.tool, each.arguments): each for each in fit}.values())
    return work, tuple(_some(unlike, work, declared, most))


def _shows_work(call: ToolCall, specs: Mapping[str, ToolSpec]) -> bool:
    spec = specs.get(call.name)
    return call.name not in _KNOWING and not (spec and spec.effects & KNOWLEDGE)


def _some(
    examples: Sequence[Example], work: WorkKind, declared: Mapping[str, ToolKind], most: int
) -> Iterator[Example]:
    """Yield some calls in order. Every tool gets its turn, with its first calls."""
    seen: Counter[str] = Counter()
    ranked = []
    for place, each in enumerate(examples):
        other = work is not WorkKind.MIXED and kind_of(each.tool, declared).value != work.value
        ranked.append((other, seen[each.tool], place))
        seen[each.tool] += 1
    chosen = {place for _, _, place in sorted(ranked)[:most]}
    yield from (each for place, each in enumerate(examples) if place in chosen)


def _example(pair: Pair, clean: Clean) -> Example:
    arguments = _shortened(pair.call.arguments, clean, SHORT if pair.said is Trust.FOREIGN else LONGEST)
    size = len(pair.result.text)
    if pair.trust is Trust.FOREIGN:
        text = f"(It succeeded with {size:,} characters. They are foreign text and are not kept.)"
    else:
        text = _clipped(visible(clean(pair.result.text)), LONGEST)
    return Example(pair.call.name, arguments, text, size, pair.said, pair.trust)


def _shortened(arguments: str, clean: Clean, room: int) -> str:
    """Return the same object with long values cut, in canonical form; secrets are removed first, in full."""
    try:
        value = json.loads(clean(arguments) or "{}")
        return canonical(_within(value, clean, room)) if isinstance(value, dict) else "{}"
    except (ValueError, RecursionError):
        return "{}"


def _within(value: object, clean: Clean, room: int) -> object:
    match value:
        case str():
            return _clipped(visible(clean(value)), room)
        case list():
            return [_within(each, clean, room) for each in value]
        case dict():
            return {_within(key, clean, SHORT): _within(each, clean, room) for key, each in value.items()}
    return value


def _clipped(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[:room]} [… {len(text) - room:,} more characters]"


class TemplateChoice(Struct, frozen=True):
    template: Template
    why: str


SIMILAR, _MEANING = 0.2, 8.0
"""From which similarity meaning counts, and how much. Tasks unrelated to a template reach 0.14."""

_TOPICS: Mapping[WorkKind, str] = {
    WorkKind.CODE: "code script python function compute calculate program run plot simulate bug",
    WorkKind.FILE: "file folder directory rename edit read write document line",
    WorkKind.RESEARCH: "web website search research online page article source news url",
}
"""Words of a task that indicate such work."""


def usable(template: Template, tools: Collection[str]) -> Template:
    """Return a template without the examples of missing tools."""
    return replace(template, examples=tuple(each for each in template.examples if each.tool in tools))


def choose(
    templates: Iterable[Template],
    words: Collection[str],
    split: Callable[[str], Collection[str]],
    near: Mapping[str, float] = MappingProxyType({}),
) -> TemplateChoice | None:
    """Choose by measured effect, then by how well it matches the words, then the least used. One that was
    measured to harm is not chosen. `near` is, by name, how near a template's description is in meaning."""
    fit = [each for each in templates if each.effect is None or each.effect >= 0]
    ranked = [(each, _matches(each, words, split, near.get(each.name, 0.0))) for each in fit]
    if not ranked:
        return None
    best, (_, why) = min(
        ranked, key=lambda each: (-(each[0].effect or 0.0), -each[1][0], len(each[0].uses), each[0].name)
    )
    if best.effect:
        return TemplateChoice(best, f"it was measured to help ({best.effect:+.2f})")
    return TemplateChoice(best, why or "nothing matches better, and it is the least used")


def _matches(
    template: Template, words: Collection[str], split: Callable[[str], Collection[str]], near: float
) -> tuple[float, str]:
    """Score a match. A tag counts most, then the kind of work, then each word of the name and the
    description. A similar meaning counts more than one word, the same meaning more than a tag."""
    tags = [tag for tag in template.tags if set(split(tag)) <= set(words) and split(tag)]
    work = not set(split(_TOPICS.get(template.work, ""))).isdisjoint(words)
    shared = sorted(set(split(f"{template.name} {template.description}")) & set(words))
    reasons = [f"its tag {tag} matches" for tag in tags[:1]]
    reasons += [f"the task speaks of {template.work} work"] if work else []
    reasons += [f"they share {', '.join(shared[:3])}"] if shared else []
    reasons += ["it is about something similar"] if near >= SIMILAR else []
    meaning = _MEANING * near if near >= SIMILAR else 0.0
    return 3 * len(tags) + 2 * work + len(shared) + meaning, "; ".join(reasons)
