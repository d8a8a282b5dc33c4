"""Permissions: the rules that hold in a folder, what each mode means, and adding and removing rules."""

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from hone.core.errors import Missing, Refused
from hone.core.permissions import MEANINGS
from hone.core.visible import path_to_text
from hone.runtime.permissions.rules import parse_rule
from hone.web.operation import Nothing, Operation, OperationCall

OWN = ("everywhere", "this folder")
"""Sources of rules that people gave as an answer, by command or here, and not in a file."""
RuleText = Annotated[str, msgspec.Meta(min_length=1, max_length=1_000)]


class PlaceQuery(msgspec.Struct, frozen=True):
    """`folder` is an absolute path; without it, the folder where the server was started."""

    folder: Annotated[str, msgspec.Meta(max_length=4_000)] = ""


class RuleRequest(msgspec.Struct, frozen=True):
    """A rule such as `terminal: make test`, for `folder` or for every folder."""

    rule: RuleText
    kind: Literal["allow", "deny"] = "allow"
    folder: Annotated[str, msgspec.Meta(max_length=4_000)] = ""
    everywhere: bool = False


class RuleRemoval(msgspec.Struct, frozen=True):
    rule: RuleText
    folder: Annotated[str, msgspec.Meta(max_length=4_000)] = ""
    everywhere: bool = False


async def read(call: OperationCall[PlaceQuery, Nothing]) -> dict[str, Any]:
    """The mode, the network, whether the folder is trusted, and every rule with where it comes from. One that
    does not count waits for `hone trust`; `own` ones can be removed here."""
    hone, folder = call.state.hone, _folder(call, call.query.folder)
    return {
        "folder": path_to_text(folder),
        "trusted": hone.folders.trusts(folder),
        "mode": hone.mode,
        "modes": [{"mode": mode, "meaning": meaning} for mode, meaning in MEANINGS.items()],
        "network": hone.settings.sandbox_in(folder).network,
        "rules": [
            {
                "kind": each.kind,
                "rule": str(each.rule),
                "source": each.source,
                "counts": each.counts,
                "own": each.source in OWN,
            }
            for each in hone.permissions.sources(folder)
        ],
    }


async def add(call: OperationCall[Nothing, RuleRequest]) -> dict[str, Any]:
    """Allow something without a question, or deny it in every mode."""
    body, rule = call.body, parse_rule(call.body.rule)
    call.state.hone.permissions.rules.add(
        _key(call, body.folder, everywhere=body.everywhere), body.kind, rule
    )
    return {"kind": body.kind, "rule": str(rule)}


async def remove(call: OperationCall[Nothing, RuleRemoval]) -> dict[str, Any]:
    """Remove a rule, whether it allows or denies. Those of a file are changed in that file."""
    body, rule = call.body, parse_rule(call.body.rule)
    if not call.state.hone.permissions.rules.remove(
        _key(call, body.folder, everywhere=body.everywhere), rule
    ):
        raise Missing(f"There is no such rule here: {rule}. Those of a file are changed in that file.")
    return {"rule": str(rule)}


def _key(call: OperationCall[Any, Any], folder: str, *, everywhere: bool) -> str:
    return "" if everywhere else path_to_text(_folder(call, folder))


def _folder(call: OperationCall[Any, Any], named: str) -> Path:
    if not named:
        return call.state.hone.folder
    if not named.startswith("/") or "\0" in named:
        raise Refused("Name the folder by its whole path.")
    return Path(named)


OPERATIONS = (
    Operation("GET", "/api/permissions", read, query=PlaceQuery),
    Operation("POST", "/api/permissions", add, body=RuleRequest, status=201),
    Operation("POST", "/api/permissions/remove", remove, body=RuleRemoval),
)
