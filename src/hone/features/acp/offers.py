"""The choices that an editor offers in a session: modes, models, and commands."""

from collections.abc import Iterable, Mapping, Sequence

from hone.app import Hone
from hone.cli import slash
from hone.cli.models import look
from hone.core.errors import HoneError
from hone.core.permissions import MEANINGS, Mode
from hone.core.visible import one_line
from hone.features.acp.editor import Update
from hone.runtime.session import Session

MODEL = "model"
"""The id of the option that chooses a model."""
MOST = 50
"""The most models to offer."""
ABOUT = 200
"""The most characters of a skill's description."""
OWN = ("compact", "context", "cost", "log", "undo", "pending", "reject", "memory", "review", "reviews")
"""Chat commands that work in an editor. None of them adds knowledge or permissions: approving needs the
terminal or the page, where the owner sees everything."""


def describe_modes(current: Mode) -> Update:
    known = [{"id": each, "name": each.capitalize(), "description": MEANINGS[each]} for each in Mode]
    return {"currentModeId": current, "availableModes": known}


def describe_options(current: str, models: Sequence[str]) -> list[Update]:
    """Return the choice of models, with the current one among them."""
    names = list(dict.fromkeys((current, *models)))
    return [
        {
            "id": MODEL,
            "name": "Model",
            "category": "model",
            "type": "select",
            "currentValue": current,
            "options": [{"value": name, "name": name} for name in names],
        }
    ]


def describe_state(session: Session, models: Sequence[str]) -> Update:
    """Return the state of a session that is opened."""
    return {
        "modes": describe_modes(session.mode),
        "configOptions": describe_options(session.agent.prefix.model, models),
    }


async def find_models(hone: Hone) -> list[str]:
    """Return the available models. This asks servers, which may take seconds."""
    try:
        return [each.name for each in (await look(hone)).usable][:MOST]
    except HoneError:
        return []


async def find_commands(hone: Hone) -> Update:
    """Return the commands of a session: some of the chat's, and the skills."""
    own = {name: slash.COMMANDS[name] for name in OWN}
    rows = [_command(name, each.help, each.argument) for name, each in own.items()]
    return {"sessionUpdate": "available_commands_update", "availableCommands": [*rows, *await _skills(hone)]}


async def _skills(hone: Hone) -> Iterable[Mapping[str, object]]:
    try:
        listed = await hone.library.listed()
    except HoneError:
        return ()
    skills = (each for each in listed if each.name not in slash.COMMANDS)
    return [_command(each.name, one_line(each.description, ABOUT), "what to do with it") for each in skills]


def _command(name: str, about: str, hint: str) -> Update:
    return {"name": name, "description": about, **({"input": {"hint": hint}} if hint else {})}
