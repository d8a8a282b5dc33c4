"""Parse front matter that needs YAML: anything beyond one `key: value` per line."""

from collections.abc import Iterable
from typing import Any

import yaml

from hone.core.errors import Refused
from hone.core.regex import regex

DEEPEST = 4


def read(front: str, example: str) -> dict[str, Any]:
    """Return the fields of front matter. Lists and mappings of texts are allowed, and nothing else of YAML.
    Raises Refused with advice, and the example."""
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        _vet(yaml.parse(front, loader))
        value = _value(yaml.compose(front, loader))
    except yaml.YAMLError as error:
        where = getattr(error, "problem", None) or "it cannot be read"
        raise Refused(
            f"The front matter of SKILL.md is not valid YAML ({where}); put special signs in quotes."
        ) from None
    if not isinstance(value, dict):
        raise Refused(f"The front matter of SKILL.md must be lines of `key: value`, like this:\n{example}")
    return value


class _CoreLoader(yaml.SafeLoader):
    """Reads a scalar as all YAML parsers do: as a number, true, false, null, or else text."""


_CoreLoader.yaml_implicit_resolvers = {}
for _pattern, _kind, _first in (
    (r"true|True|TRUE|false|False|FALSE", "bool", "tTfF"),
    (r"~|null|Null|NULL|", "null", ["~", "n", "N", ""]),
    (r"[-+]?(?:0|[1-9][0-9]*)", "int", "-+0123456789"),
    (r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?", "float", "-+0123456789."),
):
    _CoreLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", regex(rf"^(?:{_pattern})$"), list(_first))


def read_values(front: str, example: str) -> dict[str, Any]:
    """Return the fields with their values as YAML has them. Raises Refused as `read` does."""
    read(front, example)
    found: dict[str, Any] = yaml.load(front, _CoreLoader)
    return found


def _vet(events: Iterable[yaml.Event]) -> None:
    """Check before anything is built: the C parser recurses to any depth, and crashes the process."""
    depth = 0
    for event in events:
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise Refused("The front matter of SKILL.md is nested too deeply.")
        if any(getattr(event, name, None) is not None for name in ("tag", "anchor")):
            raise Refused("The front matter of SKILL.md may use no YAML tags, anchors or aliases.")


def _value(node: yaml.Node | None) -> Any:
    """Return every scalar as its text. What a strict parser refuses is refused here, too."""
    match node:
        case None:
            return ""
        case yaml.ScalarNode(value="<<" | "=") if not node.style:
            raise Refused(
                f"The front matter of SKILL.md holds {node.value}, which YAML uses; put it in quotes."
            )
        case yaml.ScalarNode():
            return str(node.value)
        case yaml.SequenceNode():
            return [_value(item) for item in node.value]
        case yaml.MappingNode():
            return _mapping(node)
    raise Refused("The front matter of SKILL.md holds something that is neither text, list nor mapping.")


def _mapping(node: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, value in node.value:
        name = _value(key)
        if not isinstance(name, str) or name in fields:
            raise Refused(f"The front matter of SKILL.md names {name!r} twice, or it is not a plain key.")
        fields[name] = _value(value)
    return fields
