"""Open, load, list, fork and close conversations for an editor, and change their mode and model."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hone.app import Hone
from hone.cli.context import news, recap, waiting
from hone.core.errors import HoneError, Missing, SettingsError
from hone.core.ids import SessionId
from hone.core.permissions import Mode
from hone.core.ports import SessionSummary, StoredSession
from hone.core.secrets import redact
from hone.core.visible import one_line, path_to_text, text_to_path, visible
from hone.features.acp import offers
from hone.features.acp.editor import Editor, Update
from hone.features.acp.history import replay
from hone.features.acp.shapes import (
    AUTH_REQUIRED,
    NOT_FOUND,
    ListSessions,
    NewSession,
    OpenStored,
    SessionOnly,
    SetMode,
    SetOption,
)
from hone.rpc.messages import INVALID_PARAMS, RpcError
from hone.rpc.peer import Followed
from hone.web.open_sessions import OpenSession, OpenSessions

PAGE = 50
"""Sessions per answer."""
TITLE = 100
"""Characters of a title."""


class Unheard:
    """Hears nothing: an editor gets its own updates."""

    def publish(self, channel: str, kind: str, data: Mapping[str, Any]) -> None:
        pass

    def clear(self, channel: str) -> None:
        pass

    def drop(self, channel: str) -> None:
        pass


class Conversations:
    """The conversations of one connection. `model` is that of new ones; empty: the default."""

    def __init__(self, hone: Hone, editor: Editor, model: str = "") -> None:
        self.open = OpenSessions(hone, Unheard(), hone.clock)
        self._hone = hone
        self._editor = editor
        self._model = model
        self._models: list[str] = []
        self._opened: dict[str, None] = {}
        self._untold: dict[str, list[str]] = {}

    def find(self, id: str) -> OpenSession:
        """Return an open conversation. Raises RpcError."""
        found = self.open.find(id)
        if found is None:
            raise RpcError(NOT_FOUND, f"There is no open session {id[:40]!r}. Load or resume it first.")
        return found

    def take_news(self, id: str) -> list[str]:
        """Return notices for the next answer, each sentence once."""
        return [*self._untold.pop(id, ()), *news(self._hone)]

    async def start(self, params: NewSession) -> Followed:
        folder = _folder(params.cwd)
        self._offer_servers(folder, params)
        try:
            opened = await self.open.begin(self._model, folder=folder)
        except SettingsError as error:
            raise RpcError(AUTH_REQUIRED, str(error)) from error
        await self._greet(opened, folder, params)
        return self._answer(opened, {"sessionId": opened.session.id})

    async def load(self, params: OpenStored) -> Followed:
        """Load a conversation. Everything that was said is sent again before the answer."""
        opened = await self._enter(params.session_id, params)
        folder = text_to_path(opened.session.header.folder)
        for update in replay(opened.session.transcript, folder):
            self._editor.update(opened.session.id, update)
        await self._editor.flush()
        return self._answer(opened, {})

    async def resume(self, params: OpenStored) -> Followed:
        return self._answer(await self._enter(params.session_id, params), {})

    async def fork(self, params: OpenStored) -> Followed:
        """Start a conversation with the messages of another one, in the same folder."""
        await self._check_folder(params.session_id, _folder(params.cwd))
        branch = await self._hone.branch(params.session_id)
        opened = await self._enter(branch, params)
        return self._answer(opened, {"sessionId": branch})

    async def list(self, params: ListSessions) -> Update:
        """List conversations by latest activity, in pages, those of one folder if it is named."""
        skip = int(params.cursor) if params.cursor and params.cursor.isdecimal() else 0
        found = await self._hone.sessions.list()
        wanted = _real(params.cwd) if params.cwd else None
        # ACP wants an absolute folder for each; what was imported may have none.
        rows = [
            each
            for each in found
            if each.header.folder and wanted in (None, text_to_path(each.header.folder))
        ]
        more = {"nextCursor": str(skip + PAGE)} if len(rows) > skip + PAGE else {}
        return {"sessions": [_row(each) for each in rows[skip : skip + PAGE]], **more}

    async def close(self, params: SessionOnly) -> Update:
        """Close a conversation: end its turn in order, and look now for what it taught."""
        self.find(params.session_id)
        await self.open.close(params.session_id)
        self._opened.pop(params.session_id, None)
        await self._hone.lookback.leave(SessionId(params.session_id))
        return {}

    async def set_mode(self, params: SetMode) -> Update:
        opened = self.find(params.session_id)
        if params.mode_id not in list(Mode):
            names = ", ".join(Mode)
            raise RpcError(INVALID_PARAMS, f"There is no mode {params.mode_id[:40]!r}. Use one of: {names}.")
        opened.session.set_mode(params.mode_id)
        return {}

    async def set_option(self, params: SetOption) -> Update:
        opened = self.find(params.session_id)
        if params.config_id != offers.MODEL or not isinstance(params.value, str):
            raise RpcError(INVALID_PARAMS, f"There is no option {params.config_id[:40]!r}.")
        opened = await self.open.change_model(params.session_id, params.value)
        return {"configOptions": offers.describe_options(opened.session.agent.prefix.model, self._models)}

    async def find_models(self) -> None:
        """Look up the available models, and send them to the sessions that were opened before."""
        self._models = await offers.find_models(self._hone)
        for id in self._opened:
            if opened := self.open.find(id):
                current = opened.session.agent.prefix.model
                options = offers.describe_options(current, self._models)
                update = {"sessionUpdate": "config_option_update", "configOptions": options}
                self._editor.update(id, update)

    async def tell_commands(self, id: str) -> None:
        self._editor.update(id, await offers.find_commands(self._hone))

    async def _enter(self, id: str, params: NewSession) -> OpenSession:
        folder = _folder(params.cwd)
        await self._check_folder(id, folder)
        self._offer_servers(folder, params)
        opened = await self.open.enter(id)
        await self._greet(opened, folder, params)
        return opened

    async def _check_folder(self, id: str, folder: Path) -> None:
        """Raise RpcError for a conversation of another folder."""
        opened = self.open.find(id)
        try:
            header = opened.session.header if opened else (await self._load(id)).header
        except Missing as error:
            raise RpcError(NOT_FOUND, str(error)) from error
        own = header.folder
        if not own:
            hint = f"Continue it in a terminal: hone --resume {id}"
            raise RpcError(INVALID_PARAMS, f"Session {id} belongs to no folder. {hint}")
        if own != path_to_text(folder):
            raise RpcError(INVALID_PARAMS, f"Session {id} works in {visible(own)}. Open it there.")

    async def _load(self, id: str) -> StoredSession:
        return await self._hone.sessions.load(SessionId(id))

    def _offer_servers(self, folder: Path, params: NewSession) -> None:
        """Pass on the editor's MCP servers before the conversation gets its tools."""
        for part in self._hone.parts("offer_servers") if params.mcp_servers else ():
            part.offer_servers(folder, params.mcp_servers or ())

    async def _greet(self, opened: OpenSession, folder: Path, params: NewSession) -> None:
        """Note notices for the next answer."""
        hone = self._hone
        said = news(hone)
        if params.additional_directories:
            said.append("Hone works in one folder; the editor's other folders are not used.")
        if not hone.folders.is_answered(folder):
            said.append(f"This folder is not trusted, so lessons from it wait for you: hone trust {folder}")
        try:
            said += await recap(hone, "hone log")
            if count := len(await hone.ledger.pending()):
                said.append(waiting(count, "hone pending"))
        except HoneError:
            pass  # the commands that it names say why
        self._opened[opened.session.id] = None
        self._untold[opened.session.id] = said

    def _answer(self, opened: OpenSession, named: Update) -> Followed:
        """Return the state of a session. Its commands follow once the editor knows of it."""
        id = opened.session.id
        state = {**named, **offers.describe_state(opened.session, self._models)}
        return Followed(state, lambda: self._editor.start(self.tell_commands(id)))


def _real(path: str) -> Path:
    return Path(path).resolve()


def _folder(cwd: str) -> Path:
    """Return a folder. Raises RpcError if it is none."""
    path = Path(cwd)
    if not path.is_absolute() or "\0" in cwd or not path.is_dir():
        raise RpcError(
            INVALID_PARAMS, f"cwd must be an absolute path of a folder, and {cwd[:200]!r} is none."
        )
    return path.resolve()


def _row(each: SessionSummary) -> Update:
    header = each.header
    return {
        "sessionId": header.id,
        "cwd": header.folder,
        "title": one_line(redact(header.title or each.opening), TITLE),
        "updatedAt": each.updated.isoformat(),
    }
