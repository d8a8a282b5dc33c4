"""Report the state of the server, and let browsers log in and out."""

from contextlib import suppress
from typing import Any

from starlette.responses import Response

from hone import __version__
from hone.core.errors import HoneError, Missing
from hone.core.visible import path_to_text
from hone.web.answers import answer
from hone.web.operation import Nothing, Operation, OperationCall


async def health(_: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """That it runs. The only thing told to whoever asks."""
    return {"status": "ok"}


async def ready(call: OperationCall[Nothing, Nothing]) -> Response:
    """Whether it can work: the database answers, its schema is current, and the server is not about to end.
    Otherwise 503 with one word: database, schema or stopping."""
    fault = await call.state.readiness.find_fault()
    return answer({"status": fault or "ready"}, 503 if fault else 200)


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
        "busy": await state.busy(),
        "reviewing": hone.background.working,
        "mark": state.bus.now,
    }


async def ticket(call: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """An address that lets one more browser in, once."""
    keys = call.state.keys
    word = await keys.ask(lambda: keys.ticket(call.caller))
    return {"url": f"{call.state.address}/login?ticket={word}"}


async def logout(call: OperationCall[Nothing, Nothing]) -> Response:
    """This browser is signed out: its cookie is valid no more, and it forgets it."""
    keys = call.state.keys
    with suppress(Missing):
        await keys.ask(lambda: keys.logins.remove(call.caller.login))
    response = answer({"status": "ok"})
    response.delete_cookie(call.state.keys.cookie_name, path="/", httponly=True, samesite="strict")
    return response


async def logins(call: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """The browsers that are signed in. `here` is the one that asks."""
    keys = call.state.keys
    found = await keys.ask(keys.logins.list)
    return {
        "logins": [
            {
                "login": each.id,
                "label": each.label,
                "created": each.created.isoformat(),
                "until": each.until.isoformat(),
                "used": each.used.isoformat(),
                "by_key": bool(each.tag),
                "here": each.id == call.caller.login,
            }
            for each in found
        ]
    }


async def sign_out(call: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """One browser is signed out at once, with what it listens to."""
    keys = call.state.keys
    gone = await keys.ask(lambda: keys.logins.remove(call.path["login"]))
    return {"login": gone.id}


OPERATIONS = (
    Operation("GET", "/api/logins", logins),
    Operation("DELETE", "/api/logins/{login}", sign_out),
    Operation("GET", "/health", health),
    Operation("GET", "/ready", ready),
    Operation("GET", "/api/status", status),
    Operation("POST", "/api/tickets", ticket, status=201),
    Operation("POST", "/api/logout", logout),
)
