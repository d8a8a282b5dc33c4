"""What the server is, how it is reached, and who may come in."""

from typing import Any

from starlette.responses import Response

from hone import __version__
from hone.core.errors import HoneError
from hone.web.answers import answer
from hone.web.operation import Nothing, Operation, OperationCall


async def health(_: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """That it runs. The only thing told to whoever asks."""
    return {"status": "ok"}


async def status(asked: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """The version, the model, the folder, what waits and what is under way."""
    house = asked.house
    hone = house.hone
    try:
        model, trouble = await hone.model(), ""
    except HoneError as error:
        model, trouble = "", str(error)
    return {
        "version": __version__,
        "model": model,
        "trouble": trouble,
        "home": str(hone.home),
        "folder": str(hone.folder),
        "trusted": hone.folders.trusts(hone.folder),
        "pending": len(await hone.ledger.pending()),
        "busy": house.talks.busy,
        "reviewing": hone.background.working,
        "mark": house.bus.now,
    }


async def ticket(asked: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """An address that lets one more browser in, once."""
    return {"url": f"{asked.house.address}/login?ticket={asked.house.keys.ticket()}"}


async def logout(asked: OperationCall[Nothing, Nothing]) -> Response:
    """The browser forgets its cookie."""
    response = answer({"status": "ok"})
    response.delete_cookie(asked.house.keys.cookie_name, path="/", httponly=True, samesite="strict")
    return response


OPERATIONS = (
    Operation("GET", "/health", health),
    Operation("GET", "/api/status", status),
    Operation("POST", "/api/tickets", ticket, status=201),
    Operation("POST", "/api/logout", logout),
)
