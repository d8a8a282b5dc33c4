"""Read and write a template as JSON. A digest detects manual edits."""

import json
from typing import Any

from hone.core.sealed import from_json, seal, sealed, to_json
from hone.features.templates.values import Example, Template

FORMAT = 1


def to_dict(template: Template) -> dict[str, Any]:
    """Return a template for programs; `from_dict` reverses it."""
    return {"format": FORMAT, **to_json(template)}


def examples_digest(template: Template) -> str:
    """Return a digest of a template's content, without how often it was used."""
    return seal(to_json(template.examples))


def from_dict(value: object) -> Template:
    """Return a template. Raises ValueError with half a sentence that says what is wrong."""
    template = from_json(value, Template, FORMAT)
    if not template.examples:
        raise ValueError("it has no examples")
    for example in template.examples:
        _check(example)
    return template


def _check(example: Example) -> None:
    try:
        fit = isinstance(json.loads(example.arguments), dict)
    except (ValueError, RecursionError):
        fit = False
    if not fit:
        raise ValueError(f"the arguments of {example.tool} are not the text of a JSON object")


def filed(template: Template) -> bytes:
    return sealed(to_dict(template))


def unfiled(data: bytes, name: str) -> Template:
    """Return a template from its file. Raises ValueError unless it is unchanged."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError("it is not valid JSON") from error
    template = from_dict(value)
    if template.name != name:
        raise ValueError(f"it is the file of {template.name}")
    if value.get("digest") != seal(to_dict(template)):
        raise ValueError("it was changed outside of Hone, and its labels can no longer be relied on")
    return template
