"""The named permits: what each kind of run may do."""

from hone.core.permit import EVERYTHING, NOTHING, Effect, Permit

USER = EVERYTHING
REVIEW = Permit(frozenset({Effect.NOTE, Effect.SKILL}))
CURATE = Permit(frozenset({Effect.SKILL}), read_only=True)
"""It reads skills. What it wants changed it says, and code does it."""
DELEGATE = Permit(frozenset(Effect) - {Effect.SPAWN})
COMPACT = NOTHING
