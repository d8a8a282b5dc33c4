"""Sessions as a table, and one of them as a readable transcript."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from hone.cli.paint import Paint
from hone.cli.render import WIDE, describe
from hone.core.messages import Image, Part, Reminder, Role, SystemNote, Text, Thinking, ToolCall, ToolResult
from hone.core.ports import Header, SessionSummary, StoredSession
from hone.core.transcript import Node
from hone.core.turn import Origin
from hone.core.visible import one_line, visible
from hone.prompt.news import headline

FOLDED = 4
"""Lines of a call or a result that are shown unless all are asked for."""
AROUND = 3
"""Messages before and after the one that is asked for."""
SPEAKERS = {Role.USER: "you", Role.ASSISTANT: "hone", Role.TOOL: "result"}


def table(summaries: Sequence[SessionSummary], width: int = WIDE) -> str:
    rows = [
        (each.header.id, moment(each.updated), f"{each.messages:,}", one_line(each.model, 30), _called(each))
        for each in summaries
    ]
    titles = ("id", "last active", "messages", "model", "about")
    widths = [max(len(row[column]) for row in (titles, *rows)) for column in range(4)]
    room = max(20, width - sum(widths) - 2 * len(widths))
    return "\n".join(_row(row, widths, room) for row in (titles, *rows))


def _row(row: Sequence[str], widths: Sequence[int], room: int) -> str:
    id, active, count, model, about = row
    cells = (id.ljust(widths[0]), active.ljust(widths[1]), count.rjust(widths[2]), model.ljust(widths[3]))
    return "  ".join((*cells, one_line(about, room))).rstrip()


def _called(summary: SessionSummary) -> str:
    header = summary.header
    mark = "" if header.origin is Origin.USER else f"[{header.origin} of {header.parent}] "
    return mark + (header.title or summary.opening)


def moment(at: datetime) -> str:
    return f"{at.astimezone():%Y-%m-%d %H:%M}"


def transcript(
    stored: StoredSession, paint: Paint, *, full: bool = False, at: int | None = None
) -> Iterator[str]:
    """Line by line, all or what is around a message; the numbers are those that `branch --at` takes."""
    yield from heading(stored, paint)
    for number, node in enumerate(stored.transcript.nodes, 1):
        if at is not None and abs(number - min(at, len(stored.transcript))) > AROUND:
            continue
        yield ""
        yield from entry(number, node, paint, full=full)


def heading(stored: StoredSession, paint: Paint) -> Iterator[str]:
    header = stored.header
    yield paint.bold(f"Session {header.id}") + (f"  {one_line(header.title, WIDE)}" if header.title else "")
    count = f"{len(stored.transcript):,} messages"
    yield paint.dim(f"{visible(stored.prefix.model)} · begun {moment(header.created)} · {count}")
    yield paint.dim(f"in {one_line(header.folder, WIDE)}")
    if header.parent:
        yield paint.dim(_kinship(header))


def _kinship(header: Header) -> str:
    kind = "a branch" if header.origin is Origin.USER else f"a fork ({header.origin})"
    return f"{kind} of {header.parent}, with whom it shares the first {header.shared:,} messages"


def entry(number: int, node: Node, paint: Paint, *, full: bool = False) -> Iterator[str]:
    template = node.message.template
    speaker = SPEAKERS[Role.ASSISTANT if template and node.message.note else node.message.role]
    about = f" · example from template {template}" if template else ""
    yield f"{paint.bold(f'{number} {speaker}')} {paint.dim(moment(node.at) + about)}"
    for part in node.message.parts:
        for line in _part(part, paint, full=full):
            yield f"  {line}" if line else ""


def brief(number: int, node: Node) -> str:
    """A message on one line."""
    message = node.message
    said = message.text or (message.result.text if message.result else "")
    calls = "".join(f" → {describe(call)}" for call in message.calls)
    return f"{number:>3} {SPEAKERS[message.role]:<7}{one_line(said + calls, WIDE - 20)}"


def _part(part: Part, paint: Paint, *, full: bool) -> Iterator[str]:
    match part:
        case Text(text):
            yield from visible(text).split("\n")
        case Image(media_type, data):
            yield f"(an image, {visible(media_type)}, {len(data) * 3 // 4:,} bytes)"
        case Thinking(text):
            yield from map(paint.dim, folded(text or "(the provider keeps its reasoning)", full=full))
        case ToolCall(name=name, arguments=arguments):
            yield from folded(f"→ {name} {arguments}", full=full) if full else [f"→ {describe(part)}"]
        case ToolResult(text=text, failed=failed):
            mark = paint.red("✗") if failed else paint.green("✓")
            first, *rest = folded(text, full=full)
            yield from (f"{mark} {first}", *(f"  {line}" for line in rest))
        case SystemNote(text) if text.strip():
            yield paint.dim(f"(Hone told the model: {headline(part)})")
            yield from (paint.dim(line) for line in (folded(text, full=True) if full else ()))
        case Reminder(text, label) if text.strip():
            count = sum(line.startswith("- ") for line in text.splitlines())
            yield paint.dim(f"(from memory, label {label}: {count} that may fit)")
            yield from (paint.dim(line) for line in (folded(text, full=True) if full else ()))


def folded(text: str, *, full: bool = False) -> list[str]:
    lines = visible(text).rstrip("\n").split("\n")
    if full:
        return lines
    kept = [one_line(line, WIDE) if len(line) > WIDE else line for line in lines[:FOLDED]]
    return kept if len(lines) <= FOLDED else [*kept, f"… {len(lines) - FOLDED:,} more lines"]
