"""What an agent may do, as effects. The only operation narrows."""

from enum import StrEnum

from hone.core.value import dataclass


class Effect(StrEnum):
    READ = "read"
    """Files and past sessions."""
    WRITE = "write"
    EXECUTE = "execute"
    NETWORK = "network"
    NOTE = "note"
    """Reading and writing of the journal."""
    SKILL = "skill"
    """Reading and writing of skills."""
    SPAWN = "spawn"


@dataclass(frozen=True, slots=True)
class Permit:
    """`attended` tells whether somebody is there to be asked; if not, every question is a no. `read_only`
    allows only tools that change nothing."""

    effects: frozenset[Effect] = frozenset()
    attended: bool = False
    read_only: bool = False

    def __and__(self, other: "Permit") -> "Permit":
        return Permit(
            self.effects & other.effects, self.attended and other.attended, self.read_only or other.read_only
        )

    def allows(self, effects: frozenset[Effect], *, readonly: bool = False) -> bool:
        return effects <= self.effects and (readonly or not self.read_only)


NOTHING = Permit()
EVERYTHING = Permit(frozenset(Effect), attended=True)
