"""Permits: the effects that an agent may have, and the named permit of each kind of run.

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
    """Reading and writing the journal."""
    SKILL = "skill"
    """Reading and writing skills."""
    SPAWN = "spawn"


class Permit(Struct, frozen=True):
    """`attended` tells whether somebody can be asked; if not, every question is answered no. `read_only`
    allows only tools that change nothing. `tools` are the names of the allowed tools; None: any."""

    effects: frozenset[Effect] = frozenset()
    attended: bool = False
    read_only: bool = False
    tools: frozenset[str] | None = None

    def __and__(self, other: "Permit") -> "Permit":
        named = [each.tools for each in (self, other) if each.tools is not None]
        return Permit(
            self.effects & other.effects,
            self.attended and other.attended,
            self.read_only or other.read_only,
            frozenset.intersection(*named) if named else None,
        )

    def allows(self, effects: frozenset[Effect], *, readonly: bool = False, tool: str | None = None) -> bool:
        """Tell whether these effects are allowed, to any tool or to the named one."""
        is_named = tool is None or self.tools is None or tool in self.tools
        return is_named and effects <= self.effects and (readonly or not self.read_only)


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
"""It reads skills and says what to change. Code makes the changes."""
COMPACT = NOTHING
