"""Read and write SKILL.md: front matter in the open Agent Skills format, and a body."""

import json
import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from hone.core.errors import Refused
from hone.core.regex import regex
from hone.core.skill import DOCUMENT, SkillSummary
from hone.knowledge.skills.naming import check_name
from hone.knowledge.skills.paths import DOCUMENT_CHARACTERS, accept, weigh

FENCE = "---"
FIELDS = ("name", "description", "license", "version", "compatibility", "metadata", "allowed-tools")
DESCRIPTION, COMPATIBILITY = 1_024, 500
EXAMPLE = "---\nname: release-notes\ndescription: What it does, and when to use it.\n---\n\nThe steps."

# A plain YAML scalar that is its own value: it cannot contain a comment, a key or a quote.
_LINE = regex(r"([a-z][a-z-]*): ((?=\w)(?:[^:#\s]|:(?=[^\s])|#(?<!\s#)| (?=[^\s#]))+(?<!:))")


# YAML parsers disagree about these, or refuse them.
_CONTROL = regex("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


class Document(Struct, frozen=True):
    """`extra` holds the format's other fields: license, version, compatibility, metadata, allowed-tools."""

    name: str
    description: str
    body: str
    extra: Mapping[str, Any] = {}

    @property
    def summary(self) -> SkillSummary:
        return SkillSummary(self.name, " ".join(self.description.split()), self.body)


def parse(text: str) -> Document:
    """Parse a document. Raises Refused with advice."""
    if len(text) > DOCUMENT_CHARACTERS:
        raise Refused(
            f"SKILL.md has {len(text):,} characters, and at most {DOCUMENT_CHARACTERS:,} are allowed; "
            "move detail into references/."
        )
    front, body = _split(text)
    fields = _simple(front) or _read_yaml(front)
    document = Document(
        check_name(_string(fields, "name")),
        _string(fields, "description").strip(),
        body,
        {key: value for key, value in fields.items() if key not in FIELDS[:2]},
    )
    _check(document, fields)
    return document


def validate(name: str, files: Mapping[str, bytes]) -> Document:
    """Check a whole folder against every rule: name, document, paths, sizes. Raises Refused with advice."""
    check_name(name)
    if DOCUMENT not in files:
        raise Refused(f"The skill {name} has no {DOCUMENT}; it would look like this:\n{EXAMPLE}")
    for path in files:
        if path != DOCUMENT and not path.startswith("@"):
            accept(path)
    weigh(files)
    document = parse(decode(DOCUMENT, files[DOCUMENT]))
    if document.name != name:
        raise Refused(
            f"The front matter says `name: {document.name}`, and the skill's folder is {name}; "
            f"write `name: {name}`."
        )
    return document


def decode(path: str, data: bytes) -> str:
    """Return the document's text. Raises Refused if it is not text."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Refused(f"{path} is not text in UTF-8; save it as such.") from None


def write_document(name: str, description: str, body: str) -> str:
    """Return a document with these parts; `parse` reverses it."""
    plain = f"description: {description}"
    if _LINE.fullmatch(plain) is None or not description.isprintable() or FENCE in description:
        plain = f"description: {json.dumps(description, ensure_ascii=False)}"
    return f"{FENCE}\nname: {name}\n{plain}\n{FENCE}\n\n{body.strip()}\n"


def keep_fields(old: str, new: str) -> str:
    """Return a new document with the old one's optional fields that it lacks. If one of them is not a valid
    document, return the new one unchanged."""
    try:
        before, after = parse(old), parse(new)
    except Refused:
        return new
    missing = [key for key in before.extra if key not in after.extra]
    if not missing:
        return new
    fields = "".join(_field(old, key) for key in missing)
    head, front, body = new.split(FENCE, 2)
    return f"{head}{FENCE}{front.rstrip()}\n{fields}{FENCE}{body}"


def _field(text: str, key: str) -> str:
    """Return the lines of one field of the front matter."""
    front = text.split(FENCE, 2)[1]
    found = re.search(rf"^{re.escape(key)}\s*:.*\n(?:[ \t-].*\n|\n)*", front, re.MULTILINE)
    return f"{found[0].rstrip()}\n" if found else ""


def read_front_matter(text: str) -> dict[str, Any]:
    """Return the front matter as any YAML parser sees it. Raises Refused."""
    from hone.knowledge.skills.front_matter import read_values  # noqa: PLC0415  as below

    return read_values(_split(text)[0], EXAMPLE)


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
    """Parse the usual form, one `key: value` per line, without a YAML parser; None for any other form."""
    fields: dict[str, Any] = {}
    for line in front.split("\n"):
        found = _LINE.fullmatch(line)
        if found is None or found[1] in fields or found[1] == "metadata" or not line.isprintable():
            return None
        fields[found[1]] = found[2]
    return fields


def _read_yaml(front: str) -> dict[str, Any]:
    # YAML takes 23 ms to import, and the bundled skills do without it.
    from hone.knowledge.skills.front_matter import read  # noqa: PLC0415

    return read(front, EXAMPLE)


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
