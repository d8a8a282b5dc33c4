"""Format sessions as a table, one session as a readable transcript, and search results as passages."""

import json
from collections.abc import Iterator, Sequence

from hone.cli.output import lay_out, moment, wrap_rows
from hone.cli.render import WIDE, Paint, describe
from hone.core.messages import (
    Attachment,
    Image,
    Part,
    Reminder,
    Role,
    SystemNote,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from hone.core.ports import Header, SessionSummary, StoredSession
from hone.core.recall import Hit, Passage, SearchResult, excerpt, is_own_question, pieces
from hone.core.transcript import Node
from hone.core.trust import Trust
from hone.core.turn import OBJECTION, Origin
from hone.core.visible import one_line, visible
from hone.prompt.news import headline

FOLDED = 4
"""How many lines of a call or a result to show unless all are requested."""
AROUND = 3
"""How many messages to show before and after the requested one."""
SPEAKERS = {Role.USER: "you", Role.ASSISTANT: "hone", Role.TOOL: "result"}
ITSELF, HOOK = "hone, to itself", "a hook"
TITLES = ("id", "last active", "messages", "model", "about")


def table(summaries: Sequence[SessionSummary], width: int | None = None) -> str:
    rows = [
        (each.header.id, moment(each.updated), f"{each.messages:,}", one_line(each.model, 30), title_of(each))
        for each in summaries
    ]
    return "\n".join(lay_out(TITLES, rows, width, right={"messages"}))


def title_of(summary: SessionSummary) -> str:
    """Return the title, or else the first words, and who had the conversation if it was not the owner."""
    header = summary.header
    of = f" of {header.parent}" if header.parent else ""
    mark = "" if header.origin is Origin.USER else f"[{header.origin}{of}] "
    return mark + (header.title or summary.opening)


def transcript(
    stored: StoredSession,
    paint: Paint,
    *,
    full: bool = False,
    at: int | None = None,
    width: int | None = None,
) -> Iterator[str]:
    """Yield a transcript, line by line, all of it or what is around a message; the numbers are those for
    `branch --at`. With a width, speech is wrapped between words."""
    yield from heading(stored, paint)
    for number, node in enumerate(stored.transcript.nodes, 1):
        if at is not None and abs(number - min(at, len(stored.transcript))) > AROUND:
            continue
        yield ""
        yield from entry(number, node, paint, full=full, header=stored.header, width=width)


def heading(stored: StoredSession, paint: Paint) -> Iterator[str]:
    header = stored.header
    yield paint.bold(f"Session {header.id}") + (f"  {one_line(header.title, WIDE)}" if header.title else "")
    count = f"{len(stored.transcript):,} messages"
    yield paint.dim(f"{visible(stored.prefix.model)} · begun {moment(header.created)} · {count}")
    yield paint.dim(f"in {one_line(header.folder, WIDE)}")
    if header.parent:
        kind = "a branch" if header.origin is Origin.USER else f"a fork ({header.origin})"
        yield paint.dim(f"{kind} of {header.parent}; they share the first {header.shared:,} messages")


def entry(
    number: int,
    node: Node,
    paint: Paint,
    *,
    full: bool = False,
    header: Header | None = None,
    width: int | None = None,
) -> Iterator[str]:
    template, role = node.message.template, node.message.role
    speaker = SPEAKERS[Role.ASSISTANT if template and node.message.note else role]
    if header and is_own_question(header, number, role, node.trust) and not template:
        speaker = ITSELF
    elif role is Role.USER and node.trust is not Trust.OWNER and node.message.text.startswith(OBJECTION):
        speaker = HOOK
    about = f" · example from template {template}" if template else ""
    yield f"{paint.bold(f'{number} {speaker}')} {paint.dim(moment(node.at) + about)}"
    for part in node.message.parts:
        for line in _part(part, paint, full=full, width=None if width is None else max(20, width - 2)):
            yield f"  {line}" if line else ""


def brief(number: int, node: Node) -> str:
    """Return a message on one line."""
    message = node.message
    said = message.text or (message.result.text if message.result else "")
    calls = "".join(f" → {describe(call)}" for call in message.calls)
    return f"{number:>3} {SPEAKERS[message.role]:<7}{one_line(said + calls, WIDE - 20)}"


def _part(part: Part, paint: Paint, *, full: bool, width: int | None) -> Iterator[str]:
    match part:
        case Text(text):
            yield from wrap_rows([visible(text)], width)
        case Image(media_type, data):
            yield f"(an image, {visible(media_type)}, {len(data) * 3 // 4:,} bytes)"
        case Thinking(text):
            yield from map(paint.dim, folded(text or "(the provider keeps its reasoning)", full=full))
        case ToolCall(name=name, arguments=arguments):
            yield from folded(f"→ {name} {arguments}", full=full) if full else [f"→ {describe(part)}"]
        case ToolResult(text=text, failed=failed):
            mark = paint.red("✗") if failed else paint.green("✓")
            first, *rest = folded(text, full=full, width=width)
            yield from (f"{mark} {first}", *(f"  {line}" for line in rest))
        case SystemNote(text) if text.strip():
            yield paint.dim(f"(Hone told the model: {headline(part)})")
            yield from map(paint.dim, folded(text, full=True) if full else ())
        case Reminder(text, label) if text.strip():
            count = sum(line.startswith("- ") for line in text.splitlines())
            yield paint.dim(f"(from memory, label {label}: {count} that may fit)")
            yield from map(paint.dim, folded(text, full=True) if full else ())
        case Attachment(text, name, label):
            yield paint.dim(f"(attached: {one_line(name, WIDE)}, {len(text):,} characters, label {label})")
            yield from map(paint.dim, folded(text, full=True) if full else ())


def folded(text: str, *, full: bool = False, width: int | None = None) -> list[str]:
    lines = visible(text).rstrip("\n").split("\n")
    if full:
        return lines
    most = WIDE if width is None else min(WIDE, width - 2)
    kept = [one_line(line, most) if len(line) > most else line for line in lines[:FOLDED]]
    return kept if len(lines) <= FOLDED else [*kept, f"… {len(lines) - FOLDED:,} more lines"]


WIDTH, BESIDE = 300, 100


def lines(found: SearchResult, paint: Paint) -> Iterator[str]:
    for place, hits in enumerate(found.trees):
        if place:
            yield ""
        for header in {hit.header.id: hit.header for hit in hits}.values():
            kind = "" if header.origin is Origin.USER else f" [{header.origin}]"
            of = f" (of {header.parent})" if header.parent else ""
            own = [hit for hit in hits if hit.header.id == header.id]
            title = one_line(own[0].title, 80)
            yield paint.bold(f"Session {header.id}") + f"{kind}{of}  {title}".rstrip()
            yield paint.dim(f"  begun {moment(header.created)}")
            for hit in own:
                yield from _entry(hit, found.tried, paint)


def _entry(hit: Hit, terms: tuple[str, ...], paint: Paint) -> Iterator[str]:
    here = hit.passage
    yield f"  {_speaker(hit, here)} {paint.dim(f'{moment(here.at)} · {here.trust.name.lower()}')}"
    if hit.before:
        yield paint.dim(f"    {_speaker(hit, hit.before)}: {_short(hit.before, terms, BESIDE)}")
    shown = pieces(_short(here, terms, WIDTH), terms)
    yield "    " + "".join(paint.bold(piece) if fits else piece for piece, fits in shown)
    if hit.after:
        yield paint.dim(f"    {_speaker(hit, hit.after)}: {_short(hit.after, terms, BESIDE)}")
    yield paint.dim(f"    {opening(hit)}")


def opening(hit: Hit) -> str:
    earlier = " --earlier" if hit.left else ""
    return f"hone sessions show {hit.header.id} --at {hit.passage.number}{earlier}"


def _speaker(hit: Hit, passage: Passage) -> str:
    own = is_own_question(hit.header, passage.number, passage.role, passage.trust)
    return f"{passage.number} {ITSELF if own else SPEAKERS[passage.role]}"


def _short(passage: Passage, terms: tuple[str, ...], width: int) -> str:
    return one_line(excerpt(passage.text, terms, width), width + 10)


def as_json(found: SearchResult) -> str:
    hits = [
        {
            "session": hit.header.id,
            "tree": hit.tree,
            "origin": hit.header.origin,
            "title": hit.header.title,
            "message": hit.passage.number,
            "role": hit.passage.role,
            "trust": hit.passage.trust.name.lower(),
            "at": hit.passage.at.isoformat(),
            "text": excerpt(hit.passage.text, found.tried, WIDTH),
            "left": hit.left,
            "open": opening(hit),
        }
        for hit in found.hits
    ]
    return json.dumps(
        {"hits": hits, "tried": found.tried, "dropped": found.dropped, "waiting": found.waiting}, indent=2
    )
