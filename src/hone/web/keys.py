"""The credentials of the server: the home's key, a cookie made from it, a one-time ticket, a password."""

import asyncio
import hashlib
import hmac
import os
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import msgspec

from hone.core.clock import Clock
from hone.core.errors import Refused, StoreError
from hone.files.atomic import make_folder, sweep, write
from hone.web.access import SharedAccess
from hone.web.api_keys import ApiKeys
from hone.web.callers import OWNER, ApiCaller, caller
from hone.web.guesses import MOST, Guesses
from hone.web.logins import Logins, login_id
from hone.web.tickets import Tickets

T = TypeVar("T")

FILE = "serve.key"
THREADS = 4
"""How many questions to ask the database at a time."""
STAY = 12 * 3600
"""Seconds for which a cookie is valid."""
HESITATION = 0.2
"""Seconds by which each previous wrong password delays the answer to another one."""
SHORTEST = 12
"""The fewest characters of a password."""


def stored(home: Path) -> str:
    """Return the key of this home, made at first use. Anybody who can read the file is the owner."""
    path, key = home / FILE, secrets.token_urlsafe(32)
    try:
        make_folder(home)
        sweep(home)
        if not os.path.lexists(path):
            write(path, f"{key}\n".encode(), over=False)  # never overwrite another server's key
            return key
    except FileExistsError:
        return _read(path)  # another server was faster
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}. The server needs a key.") from error
    return _read(path)


def _read(path: Path) -> str:
    try:
        key = path.read_text("ascii").strip()
    except (OSError, ValueError) as error:
        raise StoreError(f"{path} cannot be read. Remove it, and the next start makes another.") from error
    if len(key) < SHORTEST:
        raise StoreError(f"{path} holds no key. Remove it, and the next start makes another.")
    return key


def password(path: Path) -> str:
    """Return the password, the first line of a file. Raises Refused if it is too easy to guess."""
    try:
        word = path.read_text("utf-8").split("\n", 1)[0].strip()
    except (OSError, ValueError) as error:
        raise Refused(f"The password file {path} cannot be read as text.") from error
    if len(word) < SHORTEST:
        raise Refused(f"The password in {path} needs at least {SHORTEST} characters.")
    return word


class Keys:
    """`port` names the cookie, so that two servers on one host do not share it. `issued` are the API keys
    besides the home's own; `logins` are the signed-in browsers, `tickets` let others in. With `shared`, the
    state of the servers on one database, questions wait for the database: `ask` them."""

    def __init__(
        self,
        key: str,
        clock: Clock,
        port: int = 0,
        password: str = "",
        issued: ApiKeys | None = None,
        logins: Logins | None = None,
        tickets: Tickets | None = None,
        shared: SharedAccess | None = None,
    ) -> None:
        self.cookie_name = shared.cookie_name if shared else f"hone-{port}"
        self.has_password = bool(password)
        self._key = key.encode()
        self._sealing = shared.seal.encode() if shared else self._key
        self._shared = shared
        self._threads = ThreadPoolExecutor(THREADS, "hone-access") if shared else None
        self._clock = clock
        self._password = password.encode()
        self._issued = issued
        self.logins = logins or Logins(clock)
        self._tickets = tickets or Tickets(clock)
        self._guesses = Guesses(clock, shared.values if shared else None)

    @property
    def is_remote(self) -> bool:
        return self._threads is not None

    async def ask(self, question: Callable[[], T]) -> T:
        """Ask a question that needs the database, if there is one."""
        if self._threads is None:
            return question()
        return await asyncio.get_running_loop().run_in_executor(self._threads, question)

    def seal_for_users(self, text: str) -> str:
        """Return a seal that all servers on one database put on the cookies of users."""
        return hmac.new(self._sealing, f"user cookie {text}".encode(), hashlib.sha256).hexdigest()

    def ticket(self, who: ApiCaller = OWNER) -> str:
        """Return a ticket for one visit."""
        return self._tickets.add(who.tag)

    def takes_ticket(self, word: str) -> ApiCaller | None:
        """Return who made a ticket. It works once."""
        found = self._tickets.take(word)
        return self._person(found.tag) if found else None

    def takes_password(self, word: str) -> bool:
        """Tell whether a password is right. After some wrong ones, none is accepted for a while, which stops
        guessing."""
        if not self._password or not self._guesses.begin():
            return False
        if hmac.compare_digest(word.encode(), self._password):
            self._guesses.forgive()
            return True
        return False

    async def hesitate(self) -> bool:
        """Wait after a wrong password, longer after each one. Tell whether so many were wrong that none is
        checked for a while."""
        wrong = await self.ask(lambda: self._guesses.count)
        await self._clock.sleep(min(wrong, MOST) * HESITATION)
        return wrong >= MOST

    def takes_key(self, word: str) -> ApiCaller | None:
        """Return the holder of a key: the owner for the home's own key, or the person or program it was
        issued to."""
        if hmac.compare_digest(word.encode(), self._key):
            return OWNER
        if self._shared and self._shared.is_owners(word):
            return OWNER
        found = self._issued.find(word) if self._issued else None
        if found is None or self._issued is None:
            return None
        self._issued.note_use(found)
        return caller(found)

    def cookie(self, who: ApiCaller = OWNER, agent: str = "") -> str:
        """Return a cookie: its end, a random value, the key it came from, and our seal."""
        word = secrets.token_urlsafe(16)
        text = f"{int(self._clock.now().timestamp()) + STAY}.{word}.{who.tag}"
        self.logins.add(word, timedelta(seconds=STAY), agent, who.tag)
        return f"{text}.{self._seal(text)}"

    def takes_cookie(self, value: str) -> ApiCaller | None:
        text, _, seal = value.rpartition(".")
        until, tag = text.partition(".")[0], text.rpartition(".")[2]
        if not hmac.compare_digest(seal.encode(), self._seal(text).encode()):
            return None
        current = until.isdigit() and int(until) > self._clock.now().timestamp()
        login = login_id(text.split(".")[1]) if current else ""
        if not login:
            return None
        self.logins.note_use(login)
        return self._person(tag, login)

    def accepts(self, who: ApiCaller) -> bool:
        """Tell whether the key of a signed-in caller is still valid, and the browser still signed in."""
        if who.login and not self.logins.has(who.login):
            return False
        return not who.tag or (self._issued is not None and self._issued.has(who.tag))

    def _person(self, tag: str, login: str = "") -> ApiCaller | None:
        """Return the caller of a cookie. It is a person, as long as the key that the cookie came from
        exists."""
        who = msgspec.structs.replace(OWNER, tag=tag, login=login)
        return who if self.accepts(who) else None

    def _seal(self, text: str) -> str:
        return hmac.new(self._sealing + self._password, f"cookie {text}".encode(), hashlib.sha256).hexdigest()
