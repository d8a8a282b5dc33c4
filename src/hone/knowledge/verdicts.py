"""The owner's rules: who may change what, how much fits, and the verdict on a change."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from hone.core.ledger import MEMORY, PROJECT, USER, Actor, Author, ChangeState
from hone.core.value import replace

LAG = 0.2
"""Seconds by which the journal's files may lag behind an agent's changes."""
AGENTS = frozenset({Actor.AGENT, Actor.REVIEW, Actor.CURATOR, Actor.CLIENT})
"""The actors whose changes are vetted. An owner may repeat and contradict, and an experiment only
proposes."""


class LearningMode(StrEnum):
    """What the owner lets an actor do without asking."""

    AUTO = "auto"
    ASK = "ask"
    OFF = "off"


class Verdict(Struct, frozen=True):
    """`cause` says why a change is pending. A `confirmed` change rests on what the owner said or did."""

    standing: ChangeState
    confirmed: bool = False
    cause: str = ""


class KeeperRules(Struct, frozen=True):
    """The owner's rules. `limits` are characters by part of the journal (0: switched off); `modes` apply by
    actor, `merges` to the curator's rewrites. `closed` says why nothing can be changed, if so. `platform` is
    the kind of program that makes changes; empty for the command line. The journal's files may lag behind an
    agent's changes by `lag` seconds: quick successive changes are then published once."""

    limits: Mapping[str, int]
    modes: Mapping[Actor, LearningMode]
    closed: str = ""
    merges: LearningMode = LearningMode.ASK
    platform: str = ""
    lag: float = 0.0

    def sign(self, author: Author) -> Author:
        """Return the author with the program that makes the change. A client brings its own name."""
        return replace(author, platform=author.platform or self.platform)


DEFAULTS = KeeperRules({MEMORY: 2_200, USER: 1_375, PROJECT[:-1]: 2_200}, {})
