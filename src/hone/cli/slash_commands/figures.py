"""`/context` and `/cost`: what fills the context window, and what was spent."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from hone.cli.output import columns, lay_out
from hone.cli.render import account, price, share
from hone.cli.slash import ChatState
from hone.core.messages import Role, SystemNote
from hone.core.model import total
from hone.core.ports import Spending
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript
from hone.core.visible import visible
from hone.models.wrappers import Windowed
from hone.prompt.compose import measure_system

BAR = 20
"""How many cells of a bar stand for the whole window."""
TOKEN = 4
"""Bytes that count as a token."""


async def show_context(state: ChatState, _: str) -> str:
    session = state.session
    prefix, model = session.agent.prefix, session.agent.model
    sizes = measure(prefix, session.transcript)
    window = model.window if isinstance(model, Windowed) else 0
    rows = [*_rows({name: size // TOKEN for name, size in sizes.items() if size}, window)]
    lines = lay_out(("in the window", "tokens", "share", ""), rows, columns(), ("tokens", "share"))
    known = f"{window:,} tokens" if window else "unknown"
    spent = await state.hone.sessions.spending(session.id) if len(session.transcript) else ()
    counted = f" The provider counted {spent[-1].usage.input:,} in the last request." if spent else ""
    return "\n".join(
        (
            f"{visible(prefix.model)}, window: {known}",
            *lines,
            f"Estimated at {TOKEN} bytes a token.{counted}",
        )
    )


def measure(prefix: Prefix, transcript: Transcript) -> dict[str, int]:
    """Return the bytes of each part of a request, by name."""
    notes = words = answers = results = 0
    for node in transcript.nodes:
        size, role = len(node.encoded), node.message.role
        note = sum(len(part.text.encode()) for part in node.message.parts if isinstance(part, SystemNote))
        notes += note
        words += size - note if role is Role.USER else 0
        answers += size if role is Role.ASSISTANT else 0
        results += size if role is Role.TOOL else 0
    return {
        **measure_system(prefix.system),
        "tools": sum(len(tool.encode()) for tool in prefix.tools),
        "your messages": words,
        "answers and calls": answers,
        "tool results": results,
        "notes from Hone": notes,
    }


def _rows(tokens: Mapping[str, int], window: int) -> Iterator[tuple[str, str, str, str]]:
    used = sum(tokens.values())
    for name, count in (*tokens.items(), ("used", used), ("free", max(0, window - used))):
        if name != "free" or window:
            yield name, f"{count:,}", _percent(count, window), bar(count, window)


def _percent(count: int, window: int) -> str:
    return f"{100 * count / window:.1f}%" if window else ""


def bar(count: int, window: int) -> str:
    """Return a bar for a share of the window, at least one cell for anything."""
    cells = min(BAR, round(BAR * count / window)) if window else 0
    return "█" * max(cells, 1 if count and window else 0)


async def show_cost(state: ChatState, _: str) -> str:
    spent = await state.hone.sessions.spending(state.session.id)
    if not spent:
        return "Nothing has been spent in this conversation yet."
    whole = account(each.usage for each in spent)
    rows = [*_by_model(spent)]
    titles = ("model", "for", "calls", "in", "cached", "out", "cost")
    right = titles[2:]
    return "\n".join((whole, *(lay_out(titles, rows, columns(), right) if len(rows) > 1 else ())))


def _by_model(spent: Sequence[Spending]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each model and purpose."""
    ordered = sorted(spent, key=_purpose)
    for (model, origin), group in groupby(ordered, _purpose):
        usages = [each.usage for each in group]
        whole = total(usages)
        figures = f"{whole.input:,}", share(whole), f"{whole.output:,}", price(whole.cost)
        yield visible(model), origin, f"{len(usages):,}", *figures


def _purpose(each: Spending) -> tuple[str, str]:
    return each.model, each.origin
