"""A scripted model that knows who calls: it answers clients, and saves one entry for each
conversation that a review reads."""

import re
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from hone.core.messages import Message, Role, assistant
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import call

LATENCY = 0.8
"""Seconds of each call of the model; a review makes two."""
TALK = re.compile(r"talk (\w+/\w+):")
TICKET = re.compile(r"ticket (\w+)/(\w+) is")
TALKED = re.compile(r"In talk (\w+/\w+): my ticket \w+/(\w+) is")
TOKEN = re.compile(r"try-(\d+)")
IN_REVIEW = "Nobody is waiting for an answer"


def say(owner: str, ticket: str, talk: str = "") -> str:
    """Words that a review has something to save from. `talk` names a conversation with several tickets."""
    where = f"In talk {owner}/{talk}: my" if talk else "My"
    return f"{where} ticket {owner}/{ticket} is green. {entry_of(ticket)}"


def entry_of(ticket: str) -> str:
    return f"Ticket {ticket} is green."


def remember(ticket: str) -> dict[str, Any]:
    return {"target": "project", "text": entry_of(ticket), "evidence": [entry_of(ticket)]}


@dataclass
class Attempt:
    """One try of a review, as the provider saw it."""

    worker: str
    began: float
    last: float


@dataclass
class Log:
    """What the provider saw of reviews, by conversation."""

    attempts: dict[str, dict[int, Attempt]] = field(default_factory=lambda: defaultdict(dict))
    count: int = 0
    turns: int = 0

    def note(self, tree: str, token: int | None, worker: str) -> int:
        now = time.monotonic()
        if token is None:
            self.count += 1
            self.attempts[tree][self.count] = Attempt(worker, now, now)
            return self.count
        self.attempts[tree][token].last = now
        return token

    def overlaps(self) -> list[str]:
        """Conversations in which one try was still at work when the next one had begun."""
        found = []
        for tree, tries in self.attempts.items():
            line = sorted(tries.values(), key=lambda each: each.began)
            found += [tree for one, two in pairwise(line) if one.last >= two.began]
        return found

    def at_work(self, worker: str, since: float) -> list[str]:
        """Conversations whose last try is this worker's."""
        return [
            tree
            for tree, tries in self.attempts.items()
            if tries and (last := tries[max(tries)]).worker == worker and last.last > since
        ]


class Script:
    """What the model says. Callers are known by their keys."""

    def __init__(self) -> None:
        self.log = Log()
        self.provider: FakeProvider | None = None

    def __call__(self, messages: Sequence[Message]) -> Message:
        words = "\n".join(message.text for message in messages)
        asked = [message.text for message in messages if message.role is Role.USER]
        tickets = TICKET.findall(words)
        if not asked or IN_REVIEW not in asked[-1] or not tickets:
            return self._answer(messages)
        owner, ticket = tickets[-1]
        talk = TALK.search(words)
        calls = [each.id for message in messages for each in message.calls] or [
            message.result.call for message in messages if message.role is Role.TOOL and message.result
        ]
        token = next((int(each[1]) for id in calls if (each := TOKEN.search(id))), None)
        number = self.log.note(talk[1] if talk else f"{owner}/{ticket}", token, self._find_caller())
        if token is not None:
            return assistant("Saved.")
        # A review may read several conversations of a folder together: the last ticket of each is new.
        last = dict(TALKED.findall(words)) or {"": ticket}
        changes = [
            call("memory", f"try-{number}-{each}", action="add_anyway", **remember(each))
            for each in last.values()
        ]
        return assistant(*changes, call("skills_list", f"look-try-{number}", query="trip"))

    def _answer(self, messages: Sequence[Message]) -> Message:
        """Look something up first: a turn has two calls, as a review has."""
        self.log.turns += 1
        if messages[-1].role is Role.TOOL:
            return assistant("Noted.")
        return assistant(call("skills_list", f"look-{self.log.turns}", query="trip"))

    def _find_caller(self) -> str:
        assert self.provider is not None
        headers = dict(self.provider.requests[-1].headers)
        return headers.get("authorization", "").rpartition("-")[2]
