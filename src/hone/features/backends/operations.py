"""Memory backends over HTTP: which there are, which one is used and why, and how they compare."""

import asyncio
from typing import Annotated, Any

import msgspec

from hone.features.backends.durability import survives
from hone.features.backends.evaluate import advice, data, recommend
from hone.features.backends.evaluation import evaluate
from hone.features.backends.part import MemoryPart
from hone.web.operation import Nothing, Operation, OperationCall


class EvaluationRequest(msgspec.Struct, frozen=True):
    """The backends that are tried out."""

    names: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=10)]


async def listed(call: OperationCall[Nothing, Nothing]) -> dict[str, Any]:
    """Every backend, whether it can be used and where it keeps things; which one is used, and why; and how
    many copies wait for it."""
    hone = call.state.hone
    backing, post = hone.part(MemoryPart).backing, await hone.stores.outbox.post()
    choice = await backing.choose()
    made = [backing.make(name) for name in backing.names]
    ready = await asyncio.gather(*(each.available() for each in made))
    return {
        "used": choice.name,
        "because": choice.why,
        "waiting": post.waiting,
        "refused": post.refused,
        "last_error": post.error or None,
        "backends": [
            {
                "name": name,
                "used": name == choice.name,
                "available": bool(can),
                "why_not": can.why or None,
                "cloud": each.is_cloud,
                "location": backing.location(name),
            }
            for name, each, can in zip(backing.names, made, ready, strict=True)
        ],
    }


async def measure(call: OperationCall[Nothing, EvaluationRequest]) -> dict[str, Any]:
    """Measure backends by using each: round trips, time, a set of questions, and the kill of a process that
    has just stored something. Everything stored for that is removed again."""
    hone = call.state.hone
    found = await evaluate(hone, call.body.names, lambda name: survives(hone, name))
    best = recommend(found)
    return {
        "backends": [data(each) for each in found],
        "recommended": best.name if best else None,
        "advice": advice(found),
    }


OPERATIONS = (
    Operation("GET", "/api/backends", listed),
    Operation("POST", "/api/backends/evaluate", measure, body=EvaluationRequest, spends=True),
)
