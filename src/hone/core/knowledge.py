"""The values that a prompt is built from: a snapshot of what is known, and the news since an earlier
snapshot."""

from msgspec import Struct

from hone.core.ledger import START, ChangeId
from hone.core.skill import ListedSkill


class Snapshot(Struct, frozen=True):
    """The entries of the journal, the top-ranked skills, and the number of all skills. `upto` is the last
    change included."""

    memory: tuple[str, ...] = ()
    user: tuple[str, ...] = ()
    project: tuple[str, ...] = ()
    skills: tuple[ListedSkill, ...] = ()
    total: int = 0
    upto: ChangeId = START


class SharedLesson(Struct, frozen=True):
    """An entry that the team shares. `change` is the approval that made it take effect."""

    text: str
    sharer: str
    approver: str
    change: ChangeId


class SharedSkill(Struct, frozen=True):
    """A skill that the team shares, as above."""

    name: str
    description: str
    sharer: str
    approver: str
    change: ChangeId


class SharedKnowledge(Struct, frozen=True):
    """What the team shares, up to a change of its ledger."""

    entries: tuple[SharedLesson, ...] = ()
    skills: tuple[SharedSkill, ...] = ()
    upto: ChangeId = START


class News(Struct, frozen=True):
    """The difference from an earlier moment. `added` and `removed` are (memory | user | project, entry);
    `skills` are new or changed, `gone` are gone."""

    upto: ChangeId
    added: tuple[tuple[str, str], ...] = ()
    removed: tuple[tuple[str, str], ...] = ()
    skills: tuple[ListedSkill, ...] = ()
    gone: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.skills or self.gone)
