"""Shorten conversations for a review that does not have them as its prefix: the owner's words come first."""

from collections.abc import Collection, Iterator, Sequence

from hone.core.transcript import Node

Numbered = tuple[int, Node]

CLIPS = (600, 200, 80, 0)
"""The most characters of a message that is not the owner's, fewer with less room."""
OWNERS = (40_000, 12_000, 4_000, 1_500, 600, 250)
"""The most characters of an owner's message, if those alone are too long."""
NEXT = "(Another conversation:)"


def shorten(said: Sequence[Numbered], starts: Collection[int] = (), room: int | None = None) -> str:
    """Return the messages by number, in `room` bytes if they fit at all. Another conversation begins at each
    number in `starts`."""
    clips = [(None, clip) for clip in CLIPS] + [(most, 0) for most in OWNERS]
    for own, others in clips:
        text = _join(said, starts, own, others)
        if room is None or _size(text) <= room:
            return text
    return _newest(said, starts, room or 0)


def _newest(said: Sequence[Numbered], starts: Collection[int], room: int) -> str:
    """Return the owner's latest messages that fit."""
    owners = [(number, node) for number, node in said if node.is_owners]
    kept: list[Numbered] = []
    for each in reversed(owners):
        if kept and _size(_join([each, *kept], starts, OWNERS[-1], 0)) > room:
            break
        kept.insert(0, each)
    left = len(owners) - len(kept)
    note = f"({left:,} earlier messages from the user are left out.)\n\n" if left else ""
    return note + _join(kept, starts, OWNERS[-1], 0)


def _join(said: Sequence[Numbered], starts: Collection[int], own: int | None, others: int) -> str:
    return "\n\n".join(_lines(said, starts, own, others))


def _lines(said: Sequence[Numbered], starts: Collection[int], own: int | None, others: int) -> Iterator[str]:
    last = 1
    for number, node in said:
        if any(last < start <= number for start in starts):
            yield NEXT
        last = number
        most = own if node.is_owners else others
        if most != 0:
            yield f"#{number} {speaker(node)}:\n{_clip(words(node), most, tail=node.is_owners)}"


def _clip(text: str, most: int | None, *, tail: bool) -> str:
    """Return the beginning of a long text; with `tail` also its end."""
    if most is None or len(text) <= most:
        return text
    end = most // 3 if tail else 0
    gone = f"[…{len(text) - most:,} more characters]"
    return f"{text[: most - end]} {gone}" + (f" {text[-end:]}" if end else "")


def _size(text: str) -> int:
    return len(text.encode())


def speaker(node: Node) -> str:
    result = node.message.result
    return f"{'failed ' if result.failed else ''}result" if result else node.message.role


def words(node: Node) -> str:
    message = node.message
    if message.result:
        return message.result.text
    calls = [f"[calls {call.name} {call.arguments}]" for call in message.calls]
    return " ".join(each for each in (message.text, *calls) if each)
