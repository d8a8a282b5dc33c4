"""Build the question of a review, and the digest it reads when the whole conversation would cost too much."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from hone.core.jobs import Topics
from hone.core.topics import TOPICS
from hone.core.transcript import Node
from hone.core.visible import one_line

QUESTIONS = {f"review-{topic.name}": topic.question for topic in TOPICS}
TEXTS = Path(__file__).with_name("texts")
OUTLINE, WIDTH = 40, 48
"""Messages that are listed by number, and how much of each."""
CLIP = 600
"""Characters of what others than the owner said, in a digest."""

Text = Callable[[str], str]
"""A text of ours by its name, or the user's own in its place."""


def text(name: str, own: Path | None = None) -> str:
    """Return the file of that name that the user put into `own`, or ours."""
    theirs = own / f"{name}.md" if own else None
    if theirs and theirs.is_file():
        return theirs.read_text(encoding="utf-8").strip()
    return QUESTIONS.get(name) or (TEXTS / f"{name}.md").read_text(encoding="utf-8").strip()


def question(topics: Topics, nodes: Sequence[Node], text: Text) -> str:
    """For a fork that has the conversation before it."""
    parts = [*_asked(topics, text), *_apart(nodes), "The messages by number:", "\n".join(outline(nodes))]
    return "\n\n".join(parts)


def digest(topics: Topics, nodes: Sequence[Node], text: Text) -> str:
    """The same for one that has not: the owner's words as they are, everything else by its beginning."""
    told = "\n\n".join(_told(number, node) for number, node in _said(nodes))
    opening = "This is a conversation you had earlier, shortened; the numbers are those of its messages."
    return "\n\n".join([opening, told, "(End of the conversation.)", *_asked(topics, text)])


def _asked(topics: Topics, text: Text) -> list[str]:
    wanted = [f"review-{topic.name}" for topic in TOPICS if topic.name in topics]
    return [text(name) for name in (*wanted, "review-ending")]


def _said(nodes: Sequence[Node]) -> list[tuple[int, Node]]:
    """By number, without the examples of a template: those were not said here."""
    return [(number, node) for number, node in enumerate(nodes, 1) if not node.message.template]


def _apart(nodes: Sequence[Node]) -> list[str]:
    examples = [number for number, node in enumerate(nodes, 1) if node.message.template]
    if not examples:
        return []
    return [
        f"Messages {examples[0]} to {examples[-1]} are examples from a template. They did not happen in this "
        "conversation: learn nothing from them, and do not name them as evidence."
    ]


def outline(nodes: Sequence[Node]) -> Iterator[str]:
    """One line a message: all of the owner's, and the last of the others."""
    said = _said(nodes)
    spare = OUTLINE - sum(node.is_owners for _, node in said)
    others = [number for number, node in said if not node.is_owners]
    shown = set(others[-spare:]) if spare > 0 else set()
    for number, node in said:
        if node.is_owners or number in shown:
            yield f"#{number} {_speaker(node)}: {one_line(_words(node), WIDTH)}"


def _told(number: int, node: Node) -> str:
    words = _words(node)
    if not node.is_owners and len(words) > CLIP:
        words = f"{words[:CLIP]} […{len(words) - CLIP:,} more characters]"
    return f"#{number} {_speaker(node)}:\n{words}"


def _speaker(node: Node) -> str:
    result = node.message.result
    return f"{'failed ' if result.failed else ''}result" if result else node.message.role


def _words(node: Node) -> str:
    message = node.message
    if message.result:
        return message.result.text
    calls = [f"[calls {call.name} {call.arguments}]" for call in message.calls]
    return " ".join(each for each in (message.text, *calls) if each)
