"""Authenticate requests. A wrong host, a foreign page or a client without a key reaches only the probes."""

import base64
import binascii
import time
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hone.core.errors import Ending, LimitReached, StoreError
from hone.core.users import AuditEvent, AuditNote
from hone.web import login_page
from hone.web.answers import add_security_headers, failure, postponed
from hone.web.callers import NOBODY, OWNER, ApiCaller
from hone.web.keys import STAY, Keys
from hone.web.operation import CALLER, STATE
from hone.web.revocation import LOOK, UNKNOWN, RevocableCall
from hone.web.state import ServerState
from hone.web.tenants import NotOpened
from hone.web.user_gate import OLD_TICKET, TooManyGuesses, Visitor, fold_address, is_user_key
from hone.web.user_keys import USER, UserKeys
from hone.web.user_limits import LateRefusals

OPEN = ("/health", "/ready")
LOGIN = "/login"
SAFE = ("GET", "HEAD")
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
LARGEST_FORM = 10_000
LARGEST = 20 * 1024 * 1024
"""The most bytes of a request."""
PAUSE = 60.0
"""Seconds that an address with many wrong keys has to wait."""
GUESSED = "There were many wrong keys from your address. Try again in a minute."
FLOODED = "These are more requests than your limit allows. Wait, and try again."
FILES = "/static/"
"""The folder of the page's files: they are the same for everybody, and a browser requests sixty of them at
once."""
LASTING = ("/events", "/v1/chat/completions")
"""The ends of paths whose requests wait for a model or for news."""
VISITOR = "hone.visitor"
"""The key in a request's scope for the user who sends it."""
NOT_FOR_PROGRAMS = (
    "This key is for a program, and programs use {} only. "
    "For everything else make a key for a person: hone serve keys add NAME --for person"
)


class AuthMiddleware:
    """Wraps the whole app, so that no route can be forgotten. `hosts` are the only names it answers to,
    `programs` the only paths that a program's key reaches. A user's request gets that user's state."""

    def __init__(
        self, app: ASGIApp, state: ServerState, hosts: Collection[str], programs: Collection[str] = ()
    ) -> None:
        assert isinstance(state.keys, Keys)
        self._app = app
        self._keys = state.keys
        self._late = LateRefusals(state.clock)
        self._tenants = state.tenants
        self._gate = state.tenants.gate if state.tenants else None
        self._hosts = frozenset(hosts)
        self._programs = frozenset(programs)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            raise RuntimeError(f"nobody talks {scope['type']} here")
        out = add_security_headers(send)
        refusal = await self._judge(scope, receive)
        if refusal is not None:
            await refusal(scope, receive, out)
            return
        visitor = scope.get(VISITOR)
        if _is_file(scope):
            await self._app(scope, receive, out)
        elif visitor and visitor.user:
            await self._serve_user(visitor, scope, receive, out)
        else:
            await self._serve(scope.get(CALLER, NOBODY), self._keys, scope, _bounded(receive), out)

    async def _serve_user(self, visitor: Visitor, scope: Scope, receive: Receive, send: Send) -> None:
        assert self._tenants is not None
        try:
            async with self._tenants.enter(visitor.user) as state:
                assert state.limiter is not None
                scope[STATE] = state
                lasting = scope["path"].endswith(LASTING)
                async with state.limiter.request(lasting=lasting):
                    if scope["method"] not in SAFE:
                        await state.limiter.receive(_Head(scope).length)
                    await self._serve(visitor.caller, state.keys, scope, _bounded(receive), send, user=True)
        except Ending as error:
            await _later(503, "stopping", str(error), error.wait)(scope, receive, send)
        except NotOpened as error:
            await failure(503, "store_error", str(error))(scope, receive, send)
        except LimitReached as error:
            await _later(429, "rate_limit_exceeded", str(error), error.wait)(scope, receive, send)

    async def _serve(
        self,
        who: ApiCaller,
        keys: Keys | UserKeys,
        scope: Scope,
        receive: Receive,
        send: Send,
        *,
        user: bool = False,
    ) -> None:
        signs_out = who.login and scope["method"] not in SAFE  # that is answered
        if not signs_out and (who.tag or who.login or user):
            await RevocableCall(self._validity(who, keys), receive, send).run(self._app, scope)
        else:
            await self._app(scope, receive, send)

    async def _judge(self, scope: Scope, receive: Receive) -> Response | None:
        """Return the answer that replaces the requested one, if any. Nobody is admitted while the database
        does not answer."""
        try:
            refusal = await self._keys.ask(lambda: self._refusal(scope))
            if refusal is None and scope["path"] == LOGIN:
                refusal = await self._sign_in(scope, receive)
        except StoreError as error:
            return failure(503, "store_error", str(error))
        except TooManyGuesses:
            await self._late.wait(fold_address(_address(scope)))
            return _later(429, "too_many_wrong_keys", GUESSED, PAUSE)
        visitor = scope.get(VISITOR)
        if refusal is None and visitor and visitor.wait:
            await self._late.wait(visitor.user)
            return _later(429, "rate_limit_exceeded", FLOODED, visitor.wait)
        return refusal

    def _validity(self, who: ApiCaller, keys: Keys | UserKeys) -> Callable[[], Awaitable[bool]]:
        """Tell whether somebody still has access. A database is asked once a second, a file each time."""
        known, until = True, time.monotonic() + LOOK if isinstance(keys, UserKeys) else 0.0  # was just asked

        async def is_valid() -> bool:
            nonlocal known, until
            if keys.is_remote and time.monotonic() < until:
                return known
            until = time.monotonic() + LOOK
            with suppress(StoreError):  # whoever is signed in stays, until the database says otherwise
                known = await keys.ask(lambda: keys.accepts(who))
            return known

        return is_valid

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the answer that refuses a request; None if it is allowed."""
        head = _Head(scope)
        if scope["path"] in OPEN and scope["method"] in SAFE:
            return None  # a load balancer asks by address, and the answer reveals nothing
        if head.one("host") not in self._hosts:
            return failure(403, "forbidden_host", "This server does not answer to that name.")
        if not self._is_own(head):
            return failure(403, "forbidden_origin", "This was asked by the page of somebody else.")
        if scope["path"] == LOGIN:
            return self._login(scope, head) if scope["method"] != "POST" else self._check_form(head)
        if scope["path"] == login_page.STYLE_PATH and scope["method"] in SAFE:
            return Response(login_page.STYLE, media_type="text/css; charset=utf-8")
        visitor = self._visitor(scope, head)
        if visitor is None:
            return self._closed(head)
        who = visitor.caller
        if who.is_program and scope["path"] not in self._programs:
            paths = " and ".join(sorted(self._programs))
            return failure(403, "forbidden_for_programs", NOT_FOR_PROGRAMS.format(paths))
        scope[CALLER], scope[VISITOR] = who, visitor
        if scope["method"] not in SAFE and head.media_type != JSON:
            return failure(415, "unsupported_media_type", f"Send the body as {JSON}.")
        if head.length > LARGEST:
            return failure(413, "too_large", f"A request has at most {LARGEST:,} bytes.")
        return None

    def _is_own(self, head: "_Head") -> bool:
        """Tell whether the page that asks is our own, by what the browser says. Another port of the same host
        is not."""
        origin, host = head.one("origin"), head.one("host")
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            return False
        return head.one("sec-fetch-site") in (None, "same-origin", "none")

    def _visitor(self, scope: Scope, head: "_Head") -> Visitor | None:
        """Return who sends a request. Raises TooManyGuesses."""
        gate, address = self._gate, _address(scope)
        # A browser names its page whenever something may change.
        is_named = scope["method"] in SAFE or head.one("origin") is not None
        if gate and gate.proxy and head.all(gate.proxy.header):
            return gate.by_proxy(head, address, counted=not _is_file(scope)) if is_named else None
        scheme, _, word = (head.one("authorization") or "").partition(" ")
        if scheme.lower() == "bearer":
            return self._by_key(word.strip(), address)
        cookie = head.cookie(self._keys.cookie_name)
        if not cookie or not is_named:
            return None
        if gate and USER in cookie:
            return gate.by_cookie(cookie, fold_address(address), counted=not _is_file(scope))
        who = self._keys.takes_cookie(cookie)
        return Visitor(who) if who else None

    def _by_key(self, word: str, address: str) -> Visitor | None:
        gate = self._gate
        if gate and is_user_key(word):
            return gate.by_key(word, fold_address(address))
        who = self._keys.takes_key(word)
        if who is None and gate:
            gate.refuse(AuditNote(AuditEvent.KEY_REFUSED, "", "wrong", fold_address(address)))
        return Visitor(who) if who else None

    def _login(self, scope: Scope, head: "_Head") -> Response:
        """Sign in by a link or, for programs, by HTTP's own dialog. A browser gets the form."""
        if scope["method"] not in SAFE:
            return failure(405, "method_not_allowed", "Log in with GET or POST.")
        query = parse_qs(scope["query_string"].decode("latin-1"))
        ticket = query.get("ticket", [""])[0]
        if scope["method"] == "GET":
            if ticket and (visitor := self._by_ticket(ticket, scope)):
                return self._welcome(visitor, head, scope)
            if head.password and self._keys.takes_password(head.password):
                return self._welcome(Visitor(OWNER), head, scope)
        response = self._closed(head, login_page.USED if ticket else "")
        if self._keys.has_password and not head.wants_page:
            response.headers["www-authenticate"] = 'Basic realm="Hone", charset="UTF-8"'
        return response

    def _by_ticket(self, word: str, scope: Scope) -> Visitor | None:
        gate, address = self._gate, fold_address(_address(scope))
        if gate and USER in word:
            return gate.by_ticket(word, address)
        who = self._keys.takes_ticket(word)
        if who is None and gate:
            gate.refuse(AuditNote(AuditEvent.TICKET_REFUSED, "", OLD_TICKET, address))
        return Visitor(who) if who else None

    def _check_form(self, head: "_Head") -> Response | None:
        """Return why the form may not be read; None if it comes from our own page."""
        if head.one("origin") is None:
            return failure(403, "forbidden_origin", "Log in with the form at /login.")
        if head.media_type != FORM or head.length > LARGEST_FORM:
            return failure(415, "unsupported_media_type", f"Send the form as {FORM}.")
        return None

    async def _sign_in(self, scope: Scope, receive: Receive) -> Response:
        """Sign in with what was typed into the form: the password, or a key where there are users. Wrong
        passwords are answered late, and after some not at all. Raises TooManyGuesses."""
        head, data = _Head(scope), b""
        more = True
        while more and len(data) <= LARGEST_FORM:
            message = await receive()
            data += message.get("body", b"")
            more = message.get("more_body", False) and message["type"] == "http.request"
        words = parse_qs(data.decode("utf-8", "replace")).get("password", [""])
        if self._gate and (is_user_key(words[0].strip()) or not self._keys.has_password):
            return await self._keys.ask(lambda: self._sign_in_by_key(words[0].strip(), head, scope))
        if await self._keys.ask(lambda: self._keys.takes_password(words[0])):
            return await self._keys.ask(lambda: self._welcome(Visitor(OWNER), head, scope))
        if await self._keys.hesitate():
            return HTMLResponse(login_page.write(login_page.LOCKED), 429)
        return self._closed(head, login_page.WRONG, as_page=True)

    def _sign_in_by_key(self, word: str, head: "_Head", scope: Scope) -> Response:
        visitor = self._by_key(word, _address(scope))
        if visitor is None:
            return self._closed(head, login_page.WRONG_KEY, as_page=True)
        if visitor.caller.is_program:
            return self._closed(head, login_page.PROGRAM, as_page=True)
        if visitor.wait:
            return _later(429, "rate_limit_exceeded", FLOODED, visitor.wait)
        return self._welcome(visitor, head, scope)

    def _welcome(self, visitor: Visitor, head: "_Head", scope: Scope) -> Response:
        response, agent = RedirectResponse("/", 303), head.one("user-agent") or ""
        keys = self._gate.keys_of(visitor.user) if self._gate and visitor.user else self._keys
        cookie = keys.cookie(visitor.caller, agent)
        if self._gate:
            self._gate.note_sign_in(visitor.user, fold_address(_address(scope)))
        response.set_cookie(self._keys.cookie_name, cookie, STAY, path="/", httponly=True, samesite="strict")
        return response

    def _closed(self, head: "_Head", why: str = "", *, as_page: bool = False) -> Response:
        if as_page or head.wants_page:
            page = login_page.write(why, password=self._keys.has_password, key=self._gate is not None)
            return HTMLResponse(page, 401)
        return failure(401, "unauthorized", UNKNOWN)


class _Head:
    """The headers of a request. One that appears twice counts as missing."""

    def __init__(self, scope: Scope) -> None:
        self._raw: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            self._raw.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))

    def all(self, name: str) -> list[str]:
        return self._raw.get(name, [])

    def one(self, name: str) -> str | None:
        """Return a header, or an empty text, which equals nothing, if there are several."""
        found = self._raw.get(name, ())
        return (found[0] if len(found) == 1 else "") if found else None

    @property
    def wants_page(self) -> bool:
        return "text/html" in (self.one("accept") or "")

    @property
    def media_type(self) -> str:
        return (self.one("content-type") or "").partition(";")[0].strip().lower()

    @property
    def length(self) -> int:
        text = self.one("content-length") or "0"
        return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else LARGEST + 1

    @property
    def password(self) -> str:
        scheme, _, word = (self.one("authorization") or "").partition(" ")
        if scheme.lower() != "basic":
            return ""
        try:
            return base64.b64decode(word, validate=True).decode().partition(":")[2]
        except (binascii.Error, ValueError):
            return ""

    def cookie(self, name: str) -> str:
        try:
            jar = SimpleCookie("; ".join(self._raw.get("cookie", ())))
        except CookieError:
            return ""
        return jar[name].value if name in jar else ""


def _is_file(scope: Scope) -> bool:
    return scope["method"] in SAFE and str(scope["path"]).startswith(FILES)


def _address(scope: Scope) -> str:
    """Return the address that a request comes from."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def _later(status: int, kind: str, message: str, wait: float) -> Response:
    return postponed(failure(status, kind, message), wait)


def _bounded(receive: Receive) -> Receive:
    """Limit a body. One without a length is cut off where it gets too long, and so is not valid JSON."""
    total = 0

    async def bounded() -> Message:
        nonlocal total
        message = await receive()
        total += len(message.get("body", b""))
        if total > LARGEST:
            return {"type": "http.disconnect"}
        return message

    return bounded
