"""Recognize the user who sends a request: by key, by cookie, by link, or by the header of a trusted proxy.

The answer to any error is the same. Only the audit log says what was wrong.
"""

import hmac
import ipaddress
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from hone.core.clock import Clock
from hone.core.errors import SettingsError
from hone.core.users import KEY, Admission, AuditEvent, AuditNote, UserDirectory, is_name
from hone.core.value import replace
from hone.settings.sections import ServeSettings
from hone.web.api_keys import KeyKind, digest
from hone.web.callers import OWNER, ApiCaller
from hone.web.keys import Keys, password
from hone.web.user_keys import USER, UserKeys, read_cookie
from hone.web.user_limits import UserLimiter

SECRET_HEADER = "x-hone-proxy-secret"
MOST_GUESSES = 20
"""How many wrong keys, links and headers an address may send in a minute; then it has to wait."""
OLD_TICKET = "used, too old or wrong"
UNNOTED = 1.0
"""Seconds for which no further guess of an address is recorded."""
REMEMBERED = 1_000
"""Keys and users whose next request is known to be too early."""


class Visitor(Struct, frozen=True):
    """The sender of a request. `user` is empty for the owner of the server's home. `wait` is the seconds
    until the next request is answered, if there were too many."""

    caller: ApiCaller
    user: str = ""
    wait: float = 0.0


class Headers(Protocol):
    def all(self, name: str) -> Sequence[str]: ...


class TrustedProxy:
    """A proxy that names the user in a header. Its address and a secret identify it."""

    def __init__(self, header: str, peers: Sequence[str], secret: str) -> None:
        self.header = header.lower()
        self._peers = [ipaddress.ip_network(each, strict=False) for each in peers]
        self._secret = secret.encode()

    def find_user(self, headers: Headers, address: str) -> tuple[str, str]:
        """Return the user, or nothing and the reason."""
        named, secrets = headers.all(self.header), headers.all(SECRET_HEADER)
        if not self._is_peer(address):
            return "", "from elsewhere"
        given = secrets[0] if len(secrets) == 1 else ""
        if not hmac.compare_digest(given.encode(), self._secret):
            return "", "without the secret"
        if len(named) != 1:
            return "", "twice"
        return (named[0], "") if is_name(named[0]) else ("", "no name of a user")

    def _is_peer(self, address: str) -> bool:
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(found in each for each in self._peers)


def open_proxy(settings: ServeSettings) -> TrustedProxy | None:
    """Return the proxy. Raises SettingsError or Refused for unusable settings."""
    if not settings.proxy_header:
        return None
    secret = password(Path(settings.proxy_secret_file).expanduser())
    try:
        return TrustedProxy(settings.proxy_header, settings.proxy_peers, secret)
    except ValueError as error:
        raise SettingsError(f"serve.proxy_peers needs addresses such as 127.0.0.1: {error}.") from error


class UserGate:
    """Its methods wait for the database: call them in a thread. They raise StoreError."""

    def __init__(self, directory: UserDirectory, keys: Keys, clock: Clock, settings: ServeSettings) -> None:
        self.directory = directory
        self.proxy = open_proxy(settings)
        self._keys = keys
        self._clock = clock
        self._settings = settings
        self._rate = settings.requests_per_minute or None
        self._guessing: dict[str, float] = {}
        self._early: dict[str, tuple[float, Visitor]] = {}

    def by_key(self, word: str, address: str) -> Visitor | None:
        tag = digest(word)
        return self._enter(tag, address, AuditEvent.KEY_REFUSED, lambda: self._ask_key(tag))

    def _ask_key(self, tag: str) -> tuple[Admission, ApiCaller]:
        entry = self.directory.enter_by_key(tag, self._rate)
        kind = KeyKind(entry.kind) if entry.kind else KeyKind.PROGRAM
        return entry, ApiCaller(entry.key, kind, tag)

    def by_cookie(self, value: str, address: str, *, counted: bool = True) -> Visitor | None:
        """Recognize a cookie. An expired or signed-out one is not recorded. A request that is not `counted`
        does not count toward the user's limit."""
        cookie = read_cookie(value, self._keys)
        if cookie is None:
            self.refuse(AuditNote(AuditEvent.COOKIE_REFUSED, detail="forged", address=address))
            return None
        logins = self.keys_of(cookie.user).logins
        if cookie.until <= self._clock.now().timestamp() or not logins.has(cookie.login):
            return None
        who = replace(OWNER, tag=cookie.tag, login=cookie.login)
        if not counted and self.directory.is_current(cookie.user, cookie.tag):
            return Visitor(who, cookie.user)
        found = self._enter(
            f"{cookie.user} {cookie.login}",
            address,
            AuditEvent.COOKIE_REFUSED,
            lambda: (self.directory.enter_as(cookie.user, cookie.tag, self._rate), who),
        )
        if found and not found.wait:
            logins.note_use(cookie.login)
        return found

    def by_proxy(self, headers: Headers, peer: str, *, counted: bool = True) -> Visitor | None:
        assert self.proxy is not None
        user, why = self.proxy.find_user(headers, peer)
        address = fold_address(peer)
        if not user:
            self.refuse(AuditNote(AuditEvent.PROXY_REFUSED, detail=why, address=address))
            return None
        if not counted and self.directory.is_current(user, ""):
            return Visitor(OWNER, user)
        return self._enter(
            user,
            address,
            AuditEvent.PROXY_REFUSED,
            lambda: (self.directory.enter_as(user, "", self._rate), OWNER),
        )

    def by_ticket(self, word: str, address: str) -> Visitor | None:
        """Recognize a link. A used, an expired and an unknown one look the same."""
        user = word.partition(USER)[2]
        found = self.keys_of(user).takes_ticket(word) if is_name(user) else None
        if found is None:
            self.refuse(AuditNote(AuditEvent.TICKET_REFUSED, detail=OLD_TICKET, address=address))
            return None
        entry = self.directory.enter_as(user, found.tag, self._rate)
        if entry.refusal:
            self.refuse(AuditNote(AuditEvent.TICKET_REFUSED, user, entry.refusal, address))
            return None
        return Visitor(found, user)

    def _enter(
        self, name: str, address: str, event: AuditEvent, ask: Callable[[], tuple[Admission, ApiCaller]]
    ) -> Visitor | None:
        """Sign in. Do not ask again about a caller who is too early until it is time."""
        until, visitor = self._early.get(name, (0.0, None))
        left = until - time.monotonic()
        if visitor and left > 0:
            return replace(visitor, wait=left)
        entry, caller = ask()
        if entry.refusal:
            self.refuse(AuditNote(event, entry.user, entry.refusal, address))
            return None
        found = Visitor(caller, entry.user, entry.wait)
        if entry.wait:
            self._early[name] = time.monotonic() + entry.wait, found
            self._note_limit(entry.user, address)
            while len(self._early) > REMEMBERED:
                self._early.pop(next(iter(self._early)), None)
        return found

    def _note_limit(self, user: str, address: str) -> None:
        self.directory.note(AuditNote(AuditEvent.LIMIT_REACHED, user, "requests", address))

    def refuse(self, note: AuditNote) -> None:
        """Record a refusal. Raises TooManyGuesses for an address with many of them; those within a second are
        recorded once."""
        now = time.monotonic()
        if now < self._guessing.get(note.address, 0.0):
            raise TooManyGuesses
        if self.directory.refuse(note) > MOST_GUESSES:
            self._guessing = {address: until for address, until in self._guessing.items() if until > now}
            self._guessing[note.address] = now + UNNOTED
            self.directory.note(AuditNote(AuditEvent.GUESSING, address=note.address))
            raise TooManyGuesses

    def keys_of(self, user: str) -> UserKeys:
        return UserKeys(user, self._keys, self.directory, self._clock)

    def limiter_of(self, user: str) -> UserLimiter:
        return UserLimiter(user, self.directory, self._keys, self._clock, self._settings)

    async def prune(self) -> None:
        await self._keys.ask(lambda: self.directory.prune(self._settings.audit_days))

    def note_sign_in(self, user: str, address: str) -> None:
        self.directory.note(AuditNote(AuditEvent.SIGNED_IN, user, address=address))


class TooManyGuesses(Exception):
    """An address has sent many wrong keys."""


def is_user_key(word: str) -> bool:
    return bool(KEY.fullmatch(word))


def fold_address(address: str) -> str:
    """Return an address as it is counted: for IPv6 the network, since one machine has all of its
    addresses."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return ""
    if isinstance(found, ipaddress.IPv4Address):
        return address
    mapped = found.ipv4_mapped
    return str(mapped) if mapped else str(ipaddress.ip_network(f"{found}/64", strict=False))
