"""What is shown before something is shared, and what the team's ledger says about it."""

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct, to_builtins

from hone.core.ledger import ChangeId
from hone.core.messages import canonical, digest
from hone.core.secrets import redact
from hone.core.trust import Trust
from hone.features.team.exposures import Exposure, ExposureKind

ENTRY = ""
"""The file of a text that is an entry of the journal."""
OPERATOR = "local"
"""The owner of the home that the database was set up from."""


class FoundExposure(Struct, frozen=True):
    """`place` is line and column, after the name of a file if it is a skill's."""

    kind: ExposureKind
    text: str
    place: str


class ShareReport(Struct, frozen=True):
    """What a person sees before they share or approve something: all of its text, what it would reveal, and
    its source. A yes is bound to `seal`, which covers all of that. `skill` is empty for an entry; `texts` are
    by file; `remarks` are sentences. `trust` is the lowest label of what it rests on."""

    skill: str
    texts: Mapping[str, str]
    exposures: tuple[FoundExposure, ...] = ()
    remarks: tuple[str, ...] = ()
    trust: Trust = Trust.LOCAL

    @property
    def seal(self) -> str:
        return digest(canonical(to_builtins(self)).encode())[:16]

    @property
    def secrets(self) -> tuple[FoundExposure, ...]:
        return tuple(each for each in self.exposures if each.kind is ExposureKind.SECRET)

    @property
    def readable(self) -> Mapping[str, str]:
        """Return the texts for a screen: without the words of secrets, which nobody may agree to anyway."""
        return {file: redact(text) for file, text in self.texts.items()} if self.secrets else self.texts


class TeamProposal(Struct, frozen=True):
    """A pending proposal for a second person."""

    change: ChangeId
    at: datetime
    sharer: str
    reason: str
    shown: ShareReport


def may_undo(me: str, sharer: str, approver: str) -> bool:
    """Tell whether somebody may undo what the team shares."""
    return me in (sharer, approver, OPERATOR)


def place_exposures(file: str, text: str, found: list[Exposure]) -> list[FoundExposure]:
    prefix = f"{file}:" if file else ""
    return [FoundExposure(each.kind, each.text, f"{prefix}{each.place(text)}") for each in found]
