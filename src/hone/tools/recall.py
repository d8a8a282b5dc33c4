"""Search earlier conversations, and read the messages around a hit."""

from collections.abc import Sequence
from typing import Annotated

from hone.core.clock import Clock
from hone.core.errors import HoneError
from hone.core.permit import Effect
from hone.core.ports import Header, Sessions
from hone.core.recall import Hit, Passage, Query, Recall, SearchResult, excerpt, is_own_question, pieces, said
from hone.core.secrets import redact
from hone.core.tool import Outcome, Tool, ToolKind
from hone.core.tool_context import ToolContext
from hone.core.trust import Trust, lowest
from hone.core.turn import Origin
from hone.core.value import replace
from hone.core.visible import one_line
from hone.tools.define import tool
from hone.tools.files import Positive

MOST = 50
WIDTH, BESIDE, WHOLE = 500, 160, 2_000
"""The most characters of a passage, of its neighbors, and of a message that is read."""
REACH = 4
"""Messages to show before and after the one that is read."""


def recall_tool(recall: Recall, sessions: Sessions, clock: Clock) -> Tool:
    @tool(effects={Effect.READ}, readonly=True, kind=ToolKind.OTHER)
    async def session_search(
        context: ToolContext,
        query: Annotated[str, 'a question, words, "a phrase" or prefix*; dates work too'] = "",
        limit: Positive = 10,
        session: Annotated[str, "read this session instead"] = "",
        at: Annotated[int, "message number to read around"] = 1,
    ) -> Outcome:
        """Search earlier conversations, or read one around a message."""
        try:
            if session:
                return await read_around(sessions, session, at)
            seen = frozenset(node.digest for node in context.transcript.nodes)
            today = clock.now().astimezone().date()
            return await find(recall, sessions, Query(query, min(limit, MOST), today=today, seen=seen))
        except HoneError as error:
            return Outcome(str(error), failed=True, trust=Trust.AGENT)

    return session_search


async def find(recall: Recall, sessions: Sessions, query: Query) -> Outcome:
    """Search the conversations and describe the hits. Raises HoneError."""
    found = await recall.search(query)
    hits = tuple([replace(hit, header=await _titled(sessions, hit.header)) for hit in found.hits])
    return Outcome(told(replace(found, hits=hits)), trust=_label(found))


async def _titled(sessions: Sessions, header: Header) -> Header:
    """Return the header without its title if foreign text was read in the session. In an imported session, a
    model may have made the title from that text, and no label covers a title."""
    if not header.title or (await sessions.load(header.id)).transcript.trust > Trust.FOREIGN:
        return header
    return replace(header, title="")


async def read_around(sessions: Sessions, beginning: str, at: int) -> Outcome:
    """Return a conversation's messages around one message. Raises HoneError."""
    stored = await sessions.load(await sessions.find(beginning))
    nodes = stored.transcript.nodes
    first = max(1, min(at, len(nodes)) - REACH)
    chosen = nodes[first - 1 : first + 2 * REACH]
    lines = [
        _line(
            Passage(number, node.message.role, node.trust, node.at, said(node.message)),
            stored.header,
            (),
            WHOLE,
        )
        for number, node in enumerate(chosen, first)
        if not node.message.template
    ]
    head = f"{_called(await _titled(sessions, stored.header))}, {len(nodes):,} messages:"
    return Outcome("\n".join([head, *lines]), trust=min(Trust.AGENT, lowest(node.trust for node in chosen)))


def told(found: SearchResult) -> str:
    if not found.hits:
        return nothing(found)
    sections = ["\n".join(_section(hits, found.tried)) for hits in found.trees]
    return "\n\n".join([*sections, *_remarks(found)])


def nothing(found: SearchResult) -> str:
    """Return what was tried, and what to try instead."""
    if found.empty:
        return "No conversation is stored yet, so there is nothing to search."
    if not found.tried:
        return "The query has no searchable words. Give a few words of what was said."
    looked = f"No message contains any of: {', '.join(found.tried)}."
    left = f" Ignored as too common: {', '.join(found.dropped)}." if found.dropped else ""
    return " ".join(
        [f"{looked}{left} Try other words, or the beginning of a word followed by *.", *_remarks(found)]
    )


def _remarks(found: SearchResult) -> list[str]:
    if not found.waiting:
        return []
    return [f"{found.waiting:,} older messages are not indexed yet; each search indexes more of them."]


def _section(hits: Sequence[Hit], terms: Sequence[str]) -> list[str]:
    """Return one conversation: its sessions, and in each the passages in order."""
    lines: list[str] = []
    for header in {hit.header.id: hit.header for hit in hits}.values():
        own = [hit for hit in hits if hit.header.id == header.id]
        lines += [f"{_called(header)}:", *_passages(own, terms)]
    return lines


def _passages(hits: Sequence[Hit], terms: Sequence[str]) -> list[str]:
    shown: dict[tuple[bool, int], str] = {}
    for hit in hits:
        mark = " (since replaced by notes)" if hit.left else ""
        shown[hit.left, hit.passage.number] = _line(hit.passage, hit.header, terms, WIDTH, mark)
    for hit in hits:
        for beside in (hit.before, hit.after):
            if beside and beside.text:
                shown.setdefault((hit.left, beside.number), _line(beside, hit.header, terms, BESIDE))
    return [shown[key] for key in sorted(shown)]


def _line(passage: Passage, header: Header, terms: Sequence[str], width: int, mark: str = "") -> str:
    """Return a message on one line, behind its number, so that it cannot imitate another one."""
    own = is_own_question(header, passage.number, passage.role, passage.trust)
    speaker = "hone to itself" if own else passage.role
    who = f"#{passage.number} {speaker}, {passage.at:%Y-%m-%d}, {passage.trust.name.lower()}{mark}"
    text = one_line(excerpt(redact(passage.text), terms, width), width + 10)
    return f"  [{who}] {_highlight(text, terms) if terms else text}"


def _highlight(text: str, terms: Sequence[str]) -> str:
    """Mark the searched words."""
    marked = (f"**{piece}**" if found else piece for piece, found in pieces(text, terms))
    return "".join(marked).replace("** **", " ")


def _called(header: Header) -> str:
    kind = "Session" if header.parent is None else "Branch"
    if header.origin is not Origin.USER:
        kind = str(header.origin).capitalize()
    of = f" of {header.parent}" if header.parent else ""
    title = f" {one_line(header.title, 80)!r}" if header.title else ""
    return f"{kind} {header.id}{of}{title}, begun {header.created:%Y-%m-%d}"


def _label(found: SearchResult) -> Trust:
    """Return the lowest label of what is shown. It is never better than the agent's own words around it."""
    shown = [each for hit in found.hits for each in (hit.passage, hit.before, hit.after) if each]
    return min(Trust.AGENT, lowest(each.trust for each in shown))
