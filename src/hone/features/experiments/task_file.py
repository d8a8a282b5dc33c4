"""Read and write a task as JSON. A digest detects edits by hand, because the check decides the result."""

from datetime import datetime
from typing import Annotated, Any

import msgspec

from hone.core.ids import SessionId
from hone.core.messages import decode
from hone.core.sealed import seal
from hone.core.transcript import Node, Transcript
from hone.core.trust import Trust
from hone.features.experiments.values import Check, Task

FORMAT = 1
Moment = Annotated[str, msgspec.Meta(min_length=1)]


class TaskMessage(msgspec.Struct, forbid_unknown_fields=True):
    message: str
    trust: str
    at: Moment


class TaskFile(msgspec.Struct, forbid_unknown_fields=True):
    format: int
    name: str
    session: str
    created: Moment
    folder: str
    request: str
    check: Check
    files: dict[str, str]
    begun: list[TaskMessage]
    digest: str = ""


def to_dict(task: Task) -> dict[str, Any]:
    """For programs."""
    return {
        "format": FORMAT,
        "name": task.name,
        "session": task.session,
        "created": task.created.isoformat(),
        "folder": task.folder,
        "request": task.request,
        "check": msgspec.to_builtins(task.check),
        "files": dict(task.files),
        "begun": [
            {"message": node.encoded.decode(), "trust": node.trust.name.lower(), "at": node.at.isoformat()}
            for node in task.begun
        ],
    }


def undescribed(data: bytes, name: str) -> Task:
    """Raises ValueError for what is not the file of that name as it was written."""
    try:
        file = msgspec.json.decode(data, type=TaskFile)
        task = _task(file)
    except (msgspec.DecodeError, KeyError, RecursionError) as error:
        raise ValueError(str(error).rstrip(".")) from error
    if task.name != name:
        raise ValueError(f"it is the file of {task.name}")
    if file.format != FORMAT:
        raise ValueError(f"it is of format {file.format}, and this Hone reads {FORMAT}")
    if file.digest != seal(to_dict(task)):
        raise ValueError("it was changed outside of Hone, and the check may be another one")
    return task


def _task(file: TaskFile) -> Task:
    return Task(
        file.name,
        SessionId(file.session),
        datetime.fromisoformat(file.created),
        file.folder,
        file.request,
        file.check,
        tuple(file.files.items()),
        _nodes(file.begun),
    )


def _nodes(said: list[TaskMessage]) -> tuple[Node, ...]:
    begun = Transcript("")
    for each in said:
        at = datetime.fromisoformat(each.at)
        begun = begun.then(decode(each.message.encode()), Trust[each.trust.upper()], at)
    return begun.nodes
