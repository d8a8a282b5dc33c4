"""Checks that every ledger makes, their error messages, and how unknown facts and invalid text are stored."""

from collections.abc import Iterator, Mapping
from typing import TypeVar

from msgspec import Struct, structs

from hone.core.errors import Conflict, Corrupt, Missing
from hone.core.ledger import Change, ChangeId, ChangeState, Delta
from hone.core.messages import digest, sound
from hone.core.skill import SkillOrigin
from hone.core.value import replace

S = TypeVar("S", bound=Struct)


def sound_words(value: S) -> S:
    """Make all texts of a value valid: file names and a model's words may hold invalid text."""
    words = {name: getattr(value, name) for name in value.__struct_fields__}
    return structs.replace(value, **{name: sound(word) for name, word in words.items() if type(word) is str})


def storable(change: Change) -> Change:
    author = replace(
        sound_words(change.author),
        evidence=tuple(map(sound_words, change.author.evidence)),
        quotes=tuple(map(sound, change.author.quotes)),
    )
    deltas = tuple(Delta(sound(each.path), each.before, each.after) for each in change.deltas)
    return replace(sound_words(change), deltas=deltas, author=author)


def digests(change: Change) -> Iterator[str]:
    """Yield all digests that a change names."""
    for delta in change.deltas:
        yield from (name for name in (delta.before, delta.after) if name is not None)


def genuine(contents: Mapping[str, bytes]) -> None:
    """Raise Corrupt unless each content matches its digest."""
    for name, body in contents.items():
        if digest(body) != name:
            raise Corrupt(f"A content is not what its digest {name[:12]} says; nothing was changed.")


def settle(about: ChangeId, state: ChangeState | None, settled: ChangeId | None) -> None:
    """Raise Conflict unless the change exists and, if it is pending, nobody has settled it yet."""
    if state is None:
        raise Conflict(f"There is no change {about} that this could be about; nothing was changed.")
    if state is ChangeState.PENDING and settled is not None:
        raise Conflict(f"Change {about} was settled by change {settled} meanwhile; nothing was changed.")


def follow(target: str, delta: Delta, held: str | None) -> None:
    """Raise Conflict unless the delta begins with what is held."""
    if delta.before != held:
        raise Conflict(f"{target} has changed meanwhile at {delta.path}; nothing was changed. Read it again.")


def absent(change: ChangeId) -> Missing:
    return Missing(f"There is no change {change}.")


def unknown(name: str) -> Missing:
    return Missing(f"There is no content with the digest {name[:12]}.")


def birth(word: bytes | None) -> SkillOrigin:
    """Return where a skill comes from. An unknown word counts as the origin that protects it."""
    if word is None:
        return SkillOrigin.AGENT
    try:
        return SkillOrigin(word.decode())
    except ValueError:
        return SkillOrigin.USER


def overtaken() -> Conflict:
    return Conflict("Another round of the curator has ended meanwhile; nothing was changed.")
