"""The links and sign-ins of one user. They are in the user's own rows, and each names its user."""

import hmac
import secrets
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from msgspec import Struct

from hone.core.clock import Clock
from hone.core.users import UserDirectory
from hone.core.value import replace
from hone.web.callers import OWNER, ApiCaller
from hone.web.keys import STAY, Keys
from hone.web.logins import Logins, login_id
from hone.web.tickets import Tickets

T = TypeVar("T")
USER = "~"
"""Precedes the user's name in a link and a cookie. No key, name or seal contains it."""


class UserKeys:
    """`server` are the keys of the server that the user came to; their holder is not a user."""

    is_remote = True

    def __init__(self, user: str, server: Keys, directory: UserDirectory, clock: Clock) -> None:
        values = directory.values(user)
        self.cookie_name = server.cookie_name
        self.logins = Logins(clock, values)
        self._tickets = Tickets(clock, values)
        self._user = user
        self._server = server
        self._directory = directory
        self._clock = clock

    async def ask(self, question: Callable[[], T]) -> T:
        return await self._server.ask(question)

    def ticket(self, who: ApiCaller = OWNER) -> str:
        """Return a ticket for one visit."""
        return f"{self._tickets.add(who.tag)}{USER}{self._user}"

    def takes_ticket(self, word: str) -> ApiCaller | None:
        """Return who made a ticket. It works once."""
        found = self._tickets.take(word.partition(USER)[0])
        return replace(OWNER, tag=found.tag) if found else None

    def cookie(self, who: ApiCaller = OWNER, agent: str = "") -> str:
        """Return a cookie: its end, a random value, the key it came from, the user, and a seal."""
        word = secrets.token_urlsafe(16)
        text = f"{int(self._clock.now().timestamp()) + STAY}.{word}.{who.tag}{USER}{self._user}"
        self.logins.add(word, timedelta(seconds=STAY), agent, who.tag)
        return f"{text}.{self._server.seal_for_users(text)}"

    def accepts(self, who: ApiCaller) -> bool:
        """Tell whether a signed-in user still has access."""
        if who.login and not self.logins.has(who.login):
            return False
        return self._directory.is_current(self._user, who.tag)


class UserCookie(Struct, frozen=True):
    """A cookie with our seal: the digest of the key it came from, its sign-in, and its end."""

    user: str
    tag: str
    login: str
    until: int


def read_cookie(value: str, server: Keys) -> UserCookie | None:
    """Return the cookie; None if the seal is not ours."""
    text, _, seal = value.rpartition(".")
    if not hmac.compare_digest(seal.encode(), server.seal_for_users(text).encode()):
        return None
    until, word, named = text.split(".", 2)
    tag, _, user = named.partition(USER)
    return UserCookie(user, tag, login_id(word), int(until))
