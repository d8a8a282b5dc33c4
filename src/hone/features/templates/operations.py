"""Templates over HTTP: list them, read their examples, make one of a conversation, delete one."""

from typing import Annotated, Any

import msgspec

from hone.core.secrets import redact
from hone.features.templates.part import TemplatesPart
from hone.features.templates.seeding import TemplateOptions
from hone.features.templates.store import Templates
from hone.features.templates.template_file import examples_digest
from hone.features.templates.values import Example, Template, WorkKind, is_listed
from hone.web.operation import Nothing, Operation, OperationCall

Words = Annotated[str, msgspec.Meta(max_length=500)]


class TemplateQuery(msgspec.Struct, frozen=True):
    """Only this `type` of work, and those that have `tag`."""

    type: WorkKind | None = None
    tag: str = ""


class NewTemplate(msgspec.Struct, frozen=True):
    """`session` is where the calls come from; at most `examples` of those that succeeded are kept. What is
    not given is found out from the conversation."""

    session: str
    name: Annotated[str, msgspec.Meta(max_length=64)] = ""
    type: WorkKind | None = None
    description: Words = ""
    tags: Annotated[tuple[Words, ...], msgspec.Meta(max_length=20)] = ()
    examples: Annotated[int, msgspec.Meta(ge=1, le=50)] = 10


def row(template: Template) -> dict[str, Any]:
    return {
        "name": template.name,
        "type": template.work,
        "session": template.session,
        "created": template.created.isoformat(),
        "description": redact(template.description),
        "tags": [redact(each) for each in template.tags],
        "examples": len(template.examples),
        "uses": len(template.uses),
        "effect": template.effect,
    }


def _example(example: Example) -> dict[str, Any]:
    return {
        "tool": example.tool,
        "arguments": redact(example.arguments),
        "result": redact(example.result),
        "size": example.size,
        "call_trust": example.call_trust.name.lower(),
        "result_trust": example.result_trust.name.lower(),
    }


async def listed(call: OperationCall[TemplateQuery, Nothing]) -> dict[str, Any]:
    """Templates by name, and what is wrong with files that cannot be used. `effect` is by how much one was
    measured to help."""
    found, broken = await _store(call).all()
    tags = (call.query.tag,) if call.query.tag else ()
    chosen = [row(each) for each in found if is_listed(each, call.query.type, tags)]
    return {"templates": chosen, "broken": broken}


async def one(call: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """A template with its examples, the sessions that began with it, and what experiments found."""
    found = await _store(call).read(call.path["template"])
    measured = await call.state.hone.findings("template", found.name, examples_digest(found))
    shown = [_example(each) for each in found.examples]
    return {**row(found), "shown": shown, "used_by": found.uses, "measured": measured}


async def create(call: OperationCall[Nothing, NewTemplate]) -> dict[str, Any]:
    """Make a template of the calls in a conversation that succeeded."""
    body, hone = call.body, call.state.hone
    tags = tuple(dict.fromkeys(each.strip().casefold() for each in body.tags if each.strip()))
    wish = TemplateOptions(body.name, body.type, body.examples, body.description, tags)
    return row(await hone.part(TemplatesPart).create(body.session, wish))


async def delete(call: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """Delete the file of a template. Conversations that began with it keep their examples."""
    name = call.path["template"]
    await _store(call).delete(name)
    return {"name": name}


def _store(call: OperationCall[Any, Any]) -> Templates:
    return call.state.hone.part(TemplatesPart).store


OPERATIONS = (
    Operation("GET", "/api/templates", listed, query=TemplateQuery),
    Operation("POST", "/api/templates", create, body=NewTemplate, status=201),
    Operation("GET", "/api/templates/{template}", one),
    Operation("DELETE", "/api/templates/{template}", delete),
)
