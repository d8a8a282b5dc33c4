"""SKILL.md in and out: front matter of the open Agent Skills format, and a body."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from hone.core.errors import Refused
from hone.core.regex import regex
from hone.core.skill import DOCUMENT, SkillSummary
from hone.core.value import dataclass
from hone.knowledge.skills.naming import shape
from hone.knowledge.skills.paths import DOCUMENT_CHARACTERS, accept, weigh

if TYPE_CHECKING:
    from yaml import Event, Node

FENCE = "---"
FIELDS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
DESCRIPTION, COMPATIBILITY, DEEPEST = 1_024, 500, 4
EXAMPLE = "---\nname: release-notes\ndescription: What it does, and when to use it.\n---\n\nThe steps."

# A plain YAML scalar that is its own value: nothing in it could be a comment, a key or a quote.
_LINE = regex(r"([a-z][a-z-]*): ((?=\w)(?:[^:#\s]|:(?=[^\s])|#(?<!\s#)| (?=[^\s#]))+(?<!:))")


# Readers of YAML differ in what they make of these, or refuse them.
_CONTROL = regex("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Document:
    """`extra` is what the format allows besides: license, compatibility, metadata, allowed-tools."""

    name: str
    description: str
    body: str
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def card(self) -> SkillSummary:
        return SkillSummary(self.name, " ".join(self.description.split()), self.body)


def parse(text: str) -> Document:
    """Raises Refused with advice."""
    if len(text) > DOCUMENT_CHARACTERS:
        raise Refused(
            f"SKILL.md has {len(text):,} characters, and at most {DOCUMENT_CHARACTERS:,} are allowed; "
            "move detail into references/."
        )
    front, body = _split(text)
    fields = _simple(front) or _yaml(front)
    document = Document(
        shape(_string(fields, "name")),
        _string(fields, "description").strip(),
        body,
        {key: value for key, value in fields.items() if key not in FIELDS[:2]},
    )
    _check(document, fields)
    return document


def validate(name: str, files: Mapping[str, bytes]) -> Document:
    """Every rule for a whole folder: name, document, paths, sizes. Raises Refused with advice."""
    shape(name)
    if DOCUMENT not in files:
        raise Refused(f"The skill {name} has no {DOCUMENT}; it would look like this:\n{EXAMPLE}")
    for path in files:
        if path != DOCUMENT and not path.startswith("@"):
            accept(path)
    weigh(files)
    document = parse(decoded(DOCUMENT, files[DOCUMENT]))
    if document.name != name:
        raise Refused(
            f"The front matter says `name: {document.name}`, and the skill's folder is {name}; "
            f"write `name: {name}`."
        )
    return document


def decoded(path: str, data: bytes) -> str:
    """Raises Refused if it is not text."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Refused(f"{path} is not text in UTF-8; save it as such.") from None


def written(name: str, description: str, body: str) -> str:
    """A document of these parts; `parse` gives them back."""
    plain = f"description: {description}"
    if _LINE.fullmatch(plain) is None or not description.isprintable() or FENCE in description:
        import json

        plain = f"description: {json.dumps(description, ensure_ascii=False)}"
    return f"{FENCE}\nname: {name}\n{plain}\n{FENCE}\n\n{body.strip()}\n"


def _split(text: str) -> tuple[str, str]:
    lines = text.split("\n")
    if lines[0].rstrip() != FENCE:
        raise Refused(f"SKILL.md must begin with a line of three hyphens, like this:\n{EXAMPLE}")
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() == FENCE:
            return _plain("\n".join(lines[1:number])), "\n".join(lines[number + 1 :]).strip()
        if FENCE in line:
            raise Refused("The front matter of SKILL.md may hold no three hyphens in a row inside a line.")
    raise Refused(f"The front matter of SKILL.md has no end; close it with {FENCE} like this:\n{EXAMPLE}")


def _plain(front: str) -> str:
    front = re.sub(r"\r(?=\n|\Z)", "", front)
    if found := _CONTROL.search(front):
        raise Refused(
            f"The front matter of SKILL.md holds a tab or control character ({found[0]!a}); use spaces."
        )
    return front


def _simple(front: str) -> dict[str, Any] | None:
    """The usual form, one `key: value` a line, without a YAML reader; None if it is not that."""
    fields: dict[str, Any] = {}
    for line in front.split("\n"):
        found = _LINE.fullmatch(line)
        if found is None or found[1] in fields or found[1] == "metadata" or not line.isprintable():
            return None
        fields[found[1]] = found[2]
    return fields


def _yaml(front: str) -> dict[str, Any]:
    import yaml

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
        raise Refused(f"The front matter of SKILL.md must be lines of `key: value`, like this:\n{EXAMPLE}")
    return value


def _vet(events: Iterable["Event"]) -> None:
    """Before anything is built: the C reader goes down a nest of any depth, and takes the process with it."""
    from yaml import CollectionEndEvent, CollectionStartEvent

    depth = 0
    for event in events:
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if depth > DEEPEST:
            raise Refused("The front matter of SKILL.md is nested too deeply.")
        if isinstance(event, CollectionStartEvent) and event.flow_style:
            raise Refused(
                "The front matter of SKILL.md may not use { } or [ ]; write one item a line instead."
            )
        if any(getattr(event, name, None) is not None for name in ("tag", "anchor")):
            raise Refused("The front matter of SKILL.md may use no YAML tags, anchors or aliases.")


def _value(node: "Node | None") -> Any:
    """Every scalar as the text it is. What a strict reader refuses is refused here, too."""
    import yaml

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


def _string(fields: Mapping[str, Any], key: str) -> str:
    value = fields.get(key, "")
    if not isinstance(value, str) or not value.strip():
        raise Refused(
            f"The front matter of SKILL.md needs a line `{key}: …` with a text, like this:\n{EXAMPLE}"
        )
    return value


def _check(document: Document, fields: Mapping[str, Any]) -> None:
    if unknown := sorted(set(fields) - set(FIELDS)):
        raise Refused(
            f"The front matter of SKILL.md may not have {', '.join(map(repr, unknown))}; "
            f"the format knows {', '.join(FIELDS)}. Put other things under metadata."
        )
    if len(fields["description"]) > DESCRIPTION:
        raise Refused(
            f"The description has {len(fields['description']):,} characters, and at most {DESCRIPTION:,} are "
            "allowed; say what it does and when to use it, and leave the rest to the body."
        )
    if not document.body:
        raise Refused("SKILL.md has no body; write the steps below the front matter.")
    compatibility = document.extra.get("compatibility", "")
    if not isinstance(compatibility, str) or len(compatibility) > COMPATIBILITY:
        raise Refused(f"The field compatibility must be a text of at most {COMPATIBILITY} characters.")
    metadata = document.extra.get("metadata", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise Refused("The field metadata must be a mapping of texts, one indented `key: value` a line.")
