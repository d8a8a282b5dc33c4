"""Permits: which effects an agent may have, and the named permit of each kind of run.

A permit can only be narrowed. It lists its effects, so a new effect is granted to nobody until it is listed.
"""

from enum import StrEnum

from msgspec import Struct


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


class Permit(Struct, frozen=True):
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
USER = Permit(
    frozenset(
        {
            Effect.READ,
            Effect.WRITE,
            Effect.EXECUTE,
            Effect.NETWORK,
            Effect.NOTE,
            Effect.SKILL,
            Effect.SPAWN,
        }
    ),
    attended=True,
)
DELEGATE = Permit(
    frozenset({Effect.READ, Effect.WRITE, Effect.EXECUTE, Effect.NETWORK, Effect.NOTE, Effect.SKILL})
)
REVIEW = Permit(frozenset({Effect.NOTE, Effect.SKILL}))
CURATE = Permit(frozenset({Effect.SKILL}), read_only=True)
"""It reads skills. What it wants changed it says, and code does it."""
COMPACT = NOTHING
