"""Read and write a template as JSON. A digest detects edits by hand."""

import json
from datetime import datetime
from typing import Annotated, Any

import msgspec

from hone.core.ids import SessionId
from hone.core.messages import canonical, digest
from hone.core.trust import Trust
from hone.features.templates.values import Example, Template, Work

FORMAT = 1

Moment = Annotated[datetime, msgspec.Meta(tz=True)]
Size = Annotated[int, msgspec.Meta(ge=0)]
Word = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9_-]{1,64}\Z")]


class ExampleFile(msgspec.Struct, forbid_unknown_fields=True):
    tool: Word
    arguments: str
    result: str
    size: Size
    call_trust: str
    result_trust: str


class TemplateFile(msgspec.Struct, forbid_unknown_fields=True):
    format: int
    name: Word
    type: Work
    session: str
    created: Moment
    description: str
    tags: list[str]
    examples: list[ExampleFile]
    uses: list[str]
    effect: float | None
    digest: str = ""


def to_dict(template: Template) -> dict[str, Any]:
    """For programs; `from_dict` gives the same template back."""
    return {
        "format": FORMAT,
        "name": template.name,
        "type": template.work.value,
        "session": template.session,
        "created": template.created.isoformat(),
        "description": template.description,
        "tags": list(template.tags),
        "examples": [_shown(example) for example in template.examples],
        "uses": list(template.uses),
        "effect": template.effect,
    }


def _shown(example: Example) -> dict[str, Any]:
    return {
        "tool": example.tool,
        "arguments": example.arguments,
        "result": example.result,
        "size": example.size,
        "call_trust": example.said.name.lower(),
        "result_trust": example.trust.name.lower(),
    }


def examples_digest(template: Template) -> str:
    """Digest what a template shows, not how often it was used."""
    return digest(canonical(to_dict(template)["examples"]).encode())


def from_dict(value: object) -> Template:
    """Raises ValueError, with half a sentence on what is wrong."""
    try:
        return _template(msgspec.convert(value, TemplateFile))
    except msgspec.ValidationError as error:
        raise ValueError(str(error).rstrip(".")) from error


def filed(template: Template) -> bytes:
    return sealed(to_dict(template))


def sealed(value: dict[str, Any]) -> bytes:
    """Return the bytes of a file that says by a digest what it holds."""
    return (json.dumps(value | {"digest": seal(value)}, indent=1, ensure_ascii=False) + "\n").encode()


def seal(value: dict[str, Any]) -> str:
    return digest(canonical(value).encode())


def unfiled(data: bytes, name: str) -> Template:
    """Raises ValueError for what is not the file of that name as it was written."""
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


def _template(file: TemplateFile) -> Template:
    if file.format != FORMAT:
        raise ValueError(f"it is of format {file.format}, and this Hone reads {FORMAT}")
    if not file.examples:
        raise ValueError("it has no examples")
    return Template(
        file.name,
        file.type,
        SessionId(file.session),
        file.created,
        tuple(map(_example, file.examples)),
        file.description,
        tuple(file.tags),
        tuple(SessionId(each) for each in dict.fromkeys(file.uses)),
        file.effect,
    )


def _example(shown: ExampleFile) -> Example:
    try:
        said, trust = (Trust[each.upper()] for each in (shown.call_trust, shown.result_trust))
        fit = isinstance(json.loads(shown.arguments), dict)
    except KeyError as error:
        raise ValueError(f"{str(error.args[0]).lower()!r} is no label of trust") from error
    except (ValueError, RecursionError):
        fit = False
    if not fit:
        raise ValueError(f"the arguments of {shown.tool} are not the text of a JSON object")
    return Example(shown.tool, shown.arguments, shown.result, shown.size, said, trust)
