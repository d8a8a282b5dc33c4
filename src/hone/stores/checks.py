"""What every ledger refuses, in which words, and what it makes of facts and of broken letters."""

from collections.abc import Iterator, Mapping

from hone.core.curation import CuratorRun
from hone.core.errors import Conflict, Corrupt, Missing
from hone.core.ids import SessionId
from hone.core.ledger import Author, Change, ChangeId, ChangeState, Delta, Evidence, Target
from hone.core.messages import digest, sound
from hone.core.skill import SkillOrigin
from hone.core.value import replace


def storable(change: Change) -> Change:
    """Reasons and quotes may come from a model, and names from a disk, with letters that are no text."""
    return replace(
        change,
        target=Target(sound(change.target)),
        cause=sound(change.cause),
        group=sound(change.group),
        deltas=tuple(Delta(sound(each.path), each.before, each.after) for each in change.deltas),
        author=_author(change.author),
    )


def _author(author: Author) -> Author:
    return replace(
        author,
        session=SessionId(sound(author.session)),
        parent=SessionId(sound(author.parent)),
        tool=sound(author.tool),
        call=sound(author.call),
        reason=sound(author.reason),
        evidence=tuple(
            Evidence(SessionId(sound(each.session)), each.message, each.trust, sound(each.digest))
            for each in author.evidence
        ),
        quotes=tuple(sound(each) for each in author.quotes),
    )


def digests(change: Change) -> Iterator[str]:
    """All that it names."""
    for delta in change.deltas:
        yield from (name for name in (delta.before, delta.after) if name is not None)


def genuine(contents: Mapping[str, bytes]) -> None:
    """Raises Corrupt unless each content is what its digest says."""
    for name, body in contents.items():
        if digest(body) != name:
            raise Corrupt(f"A content is not what its digest {name[:12]} says; nothing was changed.")


def settle(about: ChangeId, standing: ChangeState | None, settled: ChangeId | None) -> None:
    """Raises Conflict unless there is such a change and, if it waited, nobody has settled it yet."""
    if standing is None:
        raise Conflict(f"There is no change {about} that this could be about; nothing was changed.")
    if standing is ChangeState.PENDING and settled is not None:
        raise Conflict(f"Change {about} was settled by change {settled} meanwhile; nothing was changed.")


def follow(target: str, delta: Delta, held: str | None) -> None:
    """Raises Conflict unless the delta begins with what is held."""
    if delta.before != held:
        raise Conflict(f"{target} has changed meanwhile at {delta.path}; nothing was changed. Read it again.")


def absent(change: ChangeId) -> Missing:
    return Missing(f"There is no change {change}.")


def unknown(name: str) -> Missing:
    return Missing(f"There is no content with the digest {name[:12]}.")


def birth(word: bytes | None) -> SkillOrigin:
    """A word that this Hone does not know is taken for one that protects."""
    if word is None:
        return SkillOrigin.AGENT
    try:
        return SkillOrigin(word.decode())
    except ValueError:
        return SkillOrigin.USER


def storable_run(run: CuratorRun) -> CuratorRun:
    """Errors and reports may hold a model's words."""
    return replace(
        run,
        why=sound(run.why),
        session=SessionId(sound(run.session)),
        library=sound(run.library),
        error=sound(run.error),
        report=sound(run.report),
    )


def overtaken() -> Conflict:
    return Conflict("Another round of the curator has ended meanwhile; nothing was changed.")
