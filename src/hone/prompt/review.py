"""Build the question of a review, for a fork of the conversation or with a digest of it."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

from hone.core.jobs import Topics
from hone.core.messages import sound
from hone.core.regex import regex
from hone.core.secrets import redact
from hone.core.topics import TOPICS
from hone.core.transcript import Node
from hone.core.visible import one_line
from hone.prompt.digest import shorten, speaker, words

QUESTIONS = {f"review-{topic.name}": topic.question for topic in TOPICS}
TEXTS = Path(__file__).with_name("texts")
TITLE = 80
"""The most characters of a title."""
_TITLE = regex(r"\W{0,3}title\W{0,3}:[ \t*_]*(\S[^\n]*)", re.IGNORECASE)
OUTLINE, WIDTH = 40, 48
"""How many messages to list by number, and how much of each."""
LEAST = 2_000
"""The fewest bytes of a conversation in a digest, however small the window."""

ONE = (
    "This is a conversation you had earlier, shortened. Each message has its number.",
    "(End of the conversation.)",
)
SEVERAL = (
    "These are short conversations you had earlier, one after the other. Each message has its number.",
    "(End of the conversations.)",
)

Text = Callable[[str], str]
"""Returns a text of ours by its name, or the user's own replacement."""


def text(name: str, own: Path | None = None) -> str:
    """Return the user's file of that name in `own`, or ours."""
    theirs = own / f"{name}.md" if own else None
    if theirs and theirs.is_file():
        return theirs.read_text(encoding="utf-8").strip()
    return QUESTIONS.get(name) or (TEXTS / f"{name}.md").read_text(encoding="utf-8").strip()


def question(
    topics: Topics, nodes: Sequence[Node], text: Text, known: str = "", *, untitled: bool = False
) -> str:
    """Return the question for a fork that has the conversation as its prefix. `known` is what is known now;
    an `untitled` conversation gets a title at the same time."""
    outlined = ["The messages by number:", "\n".join(outline(nodes))]
    asked = _asked(topics, text, untitled=untitled)
    return "\n\n".join([*asked, *filter(None, [known]), *_apart(nodes), *outlined])


def digest(
    topics: Topics,
    nodes: Sequence[Node],
    text: Text,
    known: str = "",
    starts: Collection[int] = (),
    room: int | None = None,
    *,
    untitled: bool = False,
) -> str:
    """Return the question for a review without the conversation as its prefix, in `room` bytes: the owner's
    words come first, then the beginnings of other messages. Another conversation begins at each of
    `starts`."""
    opening, ending = SEVERAL if starts else ONE
    rest = [ending, *_asked(topics, text, untitled=untitled), *filter(None, [known])]
    taken = sum(len(part.encode()) + 2 for part in (opening, *rest))
    left = None if room is None else max(LEAST, room - taken)
    return "\n\n".join([opening, shorten(_said(nodes), starts, left), *rest])


def _asked(topics: Topics, text: Text, *, untitled: bool) -> list[str]:
    wanted = [f"review-{topic.name}" for topic in TOPICS if topic.name in topics]
    last = ("review-ending", "review-title") if untitled else ("review-ending",)
    return [text(name) for name in (*wanted, *last)]


def read_title(reply: str) -> str:
    """Return the title at the start of a reply, on one line and without quotes; nothing if there is none."""
    found = _TITLE.match(reply.strip())
    words = found[1].strip(" *_`\"'“”").rstrip(".") if found else ""
    return one_line(redact(sound(words)), TITLE) if words.strip("…") else ""


def _said(nodes: Sequence[Node]) -> list[tuple[int, Node]]:
    """Return messages by number, without the examples of a template, which were not said here."""
    return [(number, node) for number, node in enumerate(nodes, 1) if not node.message.template]


def _apart(nodes: Sequence[Node]) -> list[str]:
    examples = [number for number, node in enumerate(nodes, 1) if node.message.template]
    if not examples:
        return []
    return [
        f"Messages {examples[0]} to {examples[-1]} are examples from a template. They did not happen in this "
        "conversation. Do not learn from them, and do not cite them as evidence."
    ]


def outline(nodes: Sequence[Node]) -> Iterator[str]:
    """Yield one line per message: all of the owner's, and the last of the others."""
    said = _said(nodes)
    spare = OUTLINE - sum(node.is_owners for _, node in said)
    others = [number for number, node in said if not node.is_owners]
    shown = set(others[-spare:]) if spare > 0 else set()
    for number, node in said:
        if node.is_owners or number in shown:
            yield f"#{number} {speaker(node)}: {one_line(words(node), WIDTH)}"
