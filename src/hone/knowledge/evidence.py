"""Look up the evidence that a model cites for a change. What the conversation does not contain is refused."""

import unicodedata
from collections.abc import Iterator, Sequence

from msgspec import Struct

from hone.core.errors import Refused
from hone.core.ledger import Evidence, Said
from hone.core.messages import Message
from hone.core.regex import regex
from hone.core.transcript import Node, Source
from hone.core.trust import Trust
from hone.core.visible import one_line, visible
from hone.knowledge.sentences import sentences

LEAST = 3
"""The fewest letters and digits of a quote: fewer stand everywhere. An ideograph counts as two."""
_LONGEST = 12
"""The most sentences of a quote; a longer one stands for the whole message."""
_NUMBER = regex(r"#?\s?(\d{1,9})")
_SPACE = regex(r"\s+")
_SIGNS = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-"})
_WIDE = regex("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")


class Located(Struct, frozen=True):
    """`said` are the owner's words among it, extended to full sentences."""

    evidence: tuple[Evidence, ...]
    said: tuple[Said, ...]

    @property
    def quotes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.text for each in self.said))


def locate(claims: Sequence[str], source: Source) -> Located:
    """Locate the evidence: a message number, counted from 1, or words from a message. Raises Refused."""
    nodes = source.transcript.nodes
    found = [_found(claim, nodes) for claim in claims]
    evidence = dict.fromkeys(
        Evidence(*source.origin(number), trust, nodes[number - 1].digest) for number, _, trust in found
    )
    said = (Said(quote, *source.origin(number), nodes[number - 1].at) for number, quote, _ in found if quote)
    return Located(tuple(evidence), tuple(dict.fromkeys(said)))


def find_cited(nodes: Sequence[Node], evidence: Evidence) -> Node | None:
    """Return the message that evidence names. A shortened conversation renumbers its messages; the digest
    still identifies the right one."""
    at = evidence.message - 1
    return next((node for node in (*nodes[at : at + 1], *nodes) if node.digest == evidence.digest), None)


def _found(claim: str, nodes: Sequence[Node]) -> tuple[int, str, Trust]:
    """Return the message's number, its words if they are the owner's, and their label."""
    if given := _NUMBER.fullmatch(claim.strip()):
        return _numbered(int(given[1]), nodes)
    wanted = _folded(claim).strip(" \"'.")
    if _weight(wanted) < LEAST:
        raise Refused(f"“{one_line(claim, 60)}” is too short; quote a few words, or give the message number.")
    # The owner's words first, and later words before earlier ones.
    said = [(number, node) for number, node in enumerate(nodes, 1) if not node.message.template]
    for number, node in sorted(said, key=lambda each: (each[1].is_owners, each[0]), reverse=True):
        for text in _texts(node.message):
            if _place(wanted, _folded(text)) >= 0:
                return number, _widened(text, wanted) if node.is_owners else "", node.trust
        for part in node.message.attachments:
            if _place(wanted, _folded(part.text)) >= 0:
                return number, "", min(node.trust, part.trust)
    words = one_line(claim, 120)
    raise Refused(
        f"The words “{words}” are not in this conversation; quote exactly, or give the message number."
    )


def _numbered(number: int, nodes: Sequence[Node]) -> tuple[int, str, Trust]:
    if not 1 <= number <= len(nodes):
        raise Refused(
            f"There is no message {number}: this conversation has {len(nodes)}. Quote its words instead."
        )
    node = nodes[number - 1]
    if node.message.template:
        raise Refused(
            f"Message {number} is an example from template {node.message.template}: it did not happen in "
            "this conversation, and nothing can rest on it. Name what was said after the examples."
        )
    return number, node.message.text.strip() if node.is_owners else "", node.trust


def _texts(message: Message) -> Iterator[str]:
    if message.text:
        yield message.text
    if message.result:
        yield message.result.text


def _folded(text: str) -> str:
    """Normalize case, white space and signs that programs change automatically."""
    plain = unicodedata.normalize("NFKC", visible(text).translate(_SIGNS)).casefold()
    return _SPACE.sub(" ", plain).strip()


def _place(wanted: str, text: str) -> int:
    """Match whole words only: `use` does not occur in `user`."""
    at = text.find(wanted)
    while at >= 0:
        if not (_splits(text, at) or _splits(text, at + len(wanted))):
            return at
        at = text.find(wanted, at + 1)
    return -1


def _splits(text: str, at: int) -> bool:
    sides = text[max(0, at - 1) : at + 1]
    return 0 < at < len(text) and sides.isalnum() and not _WIDE.search(sides)


def _weight(text: str) -> int:
    return sum(2 if _WIDE.match(letter) else 1 for letter in text if letter.isalnum())


def _widened(text: str, wanted: str) -> str:
    """Widen to whole sentences: half a sentence can mean the opposite of the whole."""
    spans = sentences(text)
    for count in range(min(len(spans), _LONGEST)):
        for (start, _), (_, end) in zip(spans, spans[count:], strict=False):
            if _place(wanted, _folded(text[start:end])) >= 0:
                return visible(text[start:end]).strip()
    return visible(text).strip()
