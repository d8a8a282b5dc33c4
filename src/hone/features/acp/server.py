"""Serve one editor: answer its requests, report what reviews learned, and end in order when it
disconnects."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from hone import __version__
from hone.app import Hone
from hone.cli.changes import failed_line, learned_lines
from hone.core.errors import Conflict, HoneError, Missing, Refused, SettingsError
from hone.core.events import Event, Learned, ReviewFailed
from hone.core.trust import Trust
from hone.features.acp import shapes
from hone.features.acp.conversations import Conversations
from hone.features.acp.editor import Editor, Update
from hone.features.acp.turns import Turns
from hone.features.acp.updates import TEXT, chunk, notice
from hone.knowledge.wording import SHELL, lesson_data
from hone.rpc.messages import INVALID_PARAMS, INVALID_REQUEST, Call, RpcError
from hone.rpc.peer import MessageChannel, Peer, read_params, unknown_method

GRACE = 3.0
"""Seconds that running reviews get when the editor disconnects."""
LOGIN = "setup"
"""The id of the only way to authenticate: choosing a model."""
CAPABILITIES: Update = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
    "mcpCapabilities": {"http": False, "sse": False},
    "sessionCapabilities": {"list": {}, "resume": {}, "fork": {}, "close": {}},
}

Act = Callable[[Any], Awaitable[object]]


class AcpServer:
    """`model` is that of new sessions. `voice` is the label of the editor's texts."""

    def __init__(self, hone: Hone, editor: Editor, model: str = "", voice: Trust = Trust.OWNER) -> None:
        self._hone = hone
        self._editor = editor
        self._conversations = found = Conversations(hone, editor, model)
        self._turns = Turns(hone, editor, found, voice)
        self._peer: Peer | None = None
        self._reading: asyncio.Task[None] | None = None
        self._begun = False
        self._methods: Mapping[str, tuple[type[Any], Act]] = {
            "session/new": (shapes.NewSession, found.start),
            "session/load": (shapes.OpenStored, found.load),
            "session/resume": (shapes.OpenStored, found.resume),
            "session/fork": (shapes.OpenStored, found.fork),
            "session/list": (shapes.ListSessions, found.list),
            "session/close": (shapes.SessionOnly, found.close),
            "session/set_mode": (shapes.SetMode, found.set_mode),
            "session/set_config_option": (shapes.SetOption, found.set_option),
            "session/prompt": (shapes.Prompt, self._turns.prompt),
        }

    async def run(self, channel: MessageChannel) -> None:
        """Serve until the editor disconnects or `stop` is called. Turns end in order before this returns."""
        self._peer = peer = Peer(channel, self, reports_noise=True)
        self._editor.connect(peer)
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(self._editor.run())
            self._editor.work_in(group)
            self._hone.background.attend(self._hear_review)
            self._reading = group.create_task(peer.run())
            await asyncio.wait([self._reading])
            await self._conversations.open.finish(0.0)
            await self._hone.background.finish_current(GRACE)
            self._editor.stop()
            sending.cancel()

    def stop(self) -> None:
        """End as if the editor had disconnected."""
        if self._reading:
            self._reading.cancel()

    async def answer(self, call: Call) -> object:
        if call.method == "initialize":
            return await self._initialize(read_params(call, shapes.Initialize))
        if call.method == "authenticate":
            return await self._authenticate()
        if call.method not in self._methods:
            raise unknown_method(call.method)
        if not self._begun:
            raise RpcError(INVALID_REQUEST, "Send initialize first.")
        type, act = self._methods[call.method]
        try:
            return await act(read_params(call, type))
        except Missing as error:
            raise RpcError(shapes.NOT_FOUND, str(error)) from error
        except (Refused, Conflict, SettingsError) as error:
            raise RpcError(INVALID_PARAMS, str(error)) from error

    async def hear(self, call: Call) -> None:
        """Handle a notification. An unreadable one is ignored, since it has no answer."""
        with suppress(RpcError):
            if call.method == "session/cancel":
                self._turns.cancel(read_params(call, shapes.SessionOnly).session_id)
            elif call.method == "$/cancel_request" and self._peer:
                self._peer.cancel(read_params(call, shapes.CancelRequest).request_id)

    async def _initialize(self, params: shapes.Initialize) -> Update:
        """Return Hone's capabilities. Hone speaks one version; an editor that does not speak it
        disconnects."""
        self._editor.capabilities = params.client_capabilities or shapes.EditorCapabilities()
        if not self._begun:
            self._begun = True
            self._editor.start(self._conversations.find_models())
        return {
            "protocolVersion": shapes.PROTOCOL,
            "agentCapabilities": CAPABILITIES,
            "agentInfo": {"name": "hone", "title": "Hone", "version": __version__},
            "authMethods": [] if await self._has_model() else [_login()],
        }

    async def _authenticate(self) -> Update:
        """Check that there is a model by now. Raises RpcError."""
        try:
            await self._hone.model()
        except SettingsError as error:
            raise RpcError(shapes.AUTH_REQUIRED, str(error)) from error
        return {}

    async def _has_model(self) -> bool:
        try:
            await self._hone.model()
        except HoneError:
            return False
        return True

    def _hear_review(self, event: Event) -> None:
        if isinstance(event, Learned):
            self._editor.start(self._tell_learned(event))
        elif isinstance(event, ReviewFailed):
            is_here = self._conversations.open.find(event.job.session)
            if is_here and self._hone.settings.learning.show != "off":
                self._editor.update(event.job.session, notice(failed_line(event.job, SHELL)))

    async def _tell_learned(self, event: Learned) -> None:
        """Report what a review learned in its session. Other lessons are in `hone log`."""
        id = event.job.session
        if not self._conversations.open.find(id):
            return
        with suppress(HoneError):
            lines = await learned_lines(self._hone.keeper, event, self._hone.settings.learning.show)
            if lines:
                lessons = [lesson_data(each) for each in event.lessons]
                text = "\n".join(lines)
                self._editor.update(id, chunk(TEXT, f"\n{text}\n", kind="learned", lessons=lessons))
            await self._conversations.tell_commands(id)


def _login() -> Update:
    about = "Hone has no model yet. Run `hone setup` in a terminal, then try again."
    return {"id": LOGIN, "name": "Choose a model", "description": about}
