"""Report the state of the server, and let browsers log in and out."""

from typing import Any

from starlette.responses import Response

from hone import __version__
from hone.core.errors import HoneError
from hone.core.visible import path_to_text
from hone.web.answers import answer
from hone.web.operation import Nothing, Operation, OperationCall


async def health(_: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """That it runs. The only thing told to whoever asks."""
    return {"status": "ok"}


async def status(call: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """The version, the model, the folder, what waits and what is under way."""
    state = call.state
    hone = state.hone
    try:
        model, trouble = await hone.model(), ""
    except HoneError as error:
        model, trouble = "", str(error)
    return {
        "version": __version__,
        "model": model,
        "trouble": trouble,
        "home": str(hone.home),
        "folder": path_to_text(hone.folder),
        "trusted": hone.folders.trusts(hone.folder),
        "pending": len(await hone.ledger.pending()),
        "busy": state.open_sessions.busy,
        "reviewing": hone.background.working,
        "mark": state.bus.now,
    }


async def ticket(call: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """An address that lets one more browser in, once."""
    return {"url": f"{call.state.address}/login?ticket={call.state.keys.ticket(call.caller)}"}


async def logout(call: OperationCall[Nothing, Nothing]) -> Response:
    """The browser forgets its cookie."""
    response = answer({"status": "ok"})
    response.delete_cookie(call.state.keys.cookie_name, path="/", httponly=True, samesite="strict")
    return response


OPERATIONS = (
    Operation("GET", "/health", health),
    Operation("GET", "/api/status", status),
    Operation("POST", "/api/tickets", ticket, status=201),
    Operation("POST", "/api/logout", logout),
)
