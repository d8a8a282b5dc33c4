"""Read and write a task as JSON. A digest detects manual edits, because the check decides the result."""

from typing import Any

import msgspec

from hone.core.sealed import from_json, seal, to_json
from hone.features.experiments.values import Task

FORMAT = 1


def to_dict(task: Task) -> dict[str, Any]:
    """Return a task for programs."""
    return {"format": FORMAT, **to_json(task)}


def undescribed(data: bytes, name: str) -> Task:
    """Return a task from its file. Raises ValueError unless it is unchanged."""
    try:
        value = msgspec.json.decode(data)
        task = from_json(value, Task, FORMAT)
        task.transcript()  # an unreadable message is found here, not in a run
    except (msgspec.DecodeError, KeyError, RecursionError) as error:
        raise ValueError(str(error).rstrip(".")) from error
    if task.name != name:
        raise ValueError(f"it is the file of {task.name}")
    if value.get("digest") != seal(to_dict(task)):
        raise ValueError("it was changed outside of Hone, and the check may be another one")
    return task
