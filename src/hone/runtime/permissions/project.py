"""Read and store rules: in the settings, in Hone's home by folder, and in a project's own file.

A project's file, `.hone/permissions.toml`, can deny. What it allows counts only after the owner has approved
that exact file with `hone trust`.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from hone.core import seldom
from hone.core.documents import CONSENT, RULES, DocumentKind, Documents, change
from hone.core.errors import Refused, StoreError
from hone.core.messages import digest
from hone.core.visible import path_to_text
from hone.files.opening import find_path
from hone.runtime.permissions.rules import Rule, RuleSet, is_about_paths, parse_rules

FILE = ".hone/permissions.toml"
LIMIT = 64_000
Kind = Literal["allow", "deny"]
NAMES = {RULES: "permissions.json", CONSENT: "permissions-everywhere.json"}
"""The documents that hold rules."""


class RuleTexts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def parse(self) -> RuleSet:
        return parse_rules(self.allow, self.deny)


class StoredRules:
    """The rules that the owner gave by answering or by command. Rules under the empty folder hold everywhere.
    One document has those of this machine; if several machines share an owner, another has those for all of
    them. An unreadable document is an error: it may deny something."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    def all(self) -> Mapping[str, RuleTexts]:
        own, shared = self._read(RULES), self._read(CONSENT)
        return {folder: _join(own.get(folder), shared.get(folder)) for folder in (*own, *shared)}

    def of(self, folder: Path) -> RuleSet:
        found = self.all()
        return found.get("", RuleTexts()).parse() | found.get(path_to_text(folder), RuleTexts()).parse()

    def add(self, folder: str, kind: Kind, rule: Rule) -> None:
        """Store a rule. A rule for everywhere holds on every machine, unless it allows paths: they name other
        files elsewhere."""
        on_all = self._documents.shared and not folder and (kind == "deny" or not is_about_paths(rule))
        self._change(CONSENT if on_all else RULES, folder, kind, lambda known: (*known, str(rule)))

    def remove(self, folder: str, rule: Rule) -> bool:
        """Remove a rule. Return whether it existed."""
        found = [(where, kind) for where in NAMES for kind in self._kinds(where, folder, rule)]
        for where, kind in found:
            self._change(where, folder, kind, lambda kept: (each for each in kept if each != str(rule)))
        return bool(found)

    def _kinds(self, where: DocumentKind, folder: str, rule: Rule) -> list[Kind]:
        known = self._read(where).get(folder, RuleTexts())
        kinds: Sequence[Kind] = ("allow", "deny")
        return [kind for kind in kinds if str(rule) in getattr(known, kind)]

    def _read(self, where: DocumentKind) -> Mapping[str, RuleTexts]:
        return self._decode(where, self._documents.read(where, NAMES[where]))

    def _decode(self, where: DocumentKind, data: bytes | None) -> Mapping[str, RuleTexts]:
        if data is None:
            return {}
        try:
            found = msgspec.json.decode(data, type=dict[str, RuleTexts])
            for each in found.values():
                each.parse()
        except (ValueError, Refused) as error:
            reason, place = str(error).rstrip("."), self._documents.describe(where, NAMES[where])
            raise StoreError(f"{place} is damaged: {reason}. Repair or remove it.") from error
        return found

    def _change(
        self, where: DocumentKind, folder: str, kind: Kind, edit: Callable[[Sequence[str]], Iterable[str]]
    ) -> None:
        def rewrite(data: bytes | None) -> bytes:
            known = dict(self._decode(where, data))
            texts = msgspec.structs.asdict(known.get(folder, RuleTexts()))
            texts[kind] = tuple(dict.fromkeys(edit(texts[kind])))
            known[folder] = RuleTexts(**texts)
            kept = {name: rules for name, rules in sorted(known.items()) if rules != RuleTexts()}
            return json.dumps(msgspec.to_builtins(kept), indent=1, ensure_ascii=False).encode()

        change(self._documents, where, NAMES[where], rewrite)


def _join(one: RuleTexts | None, other: RuleTexts | None) -> RuleTexts:
    if one is None or other is None:
        return one or other or RuleTexts()
    both = zip((one.allow, one.deny), (other.allow, other.deny), strict=True)
    return RuleTexts(*(tuple(dict.fromkeys((*mine, *theirs))) for mine, theirs in both))


class ProjectRules(msgspec.Struct, frozen=True):
    """A project's own file. `digest` is that of its bytes, `text` what the owner is shown."""

    texts: RuleTexts
    text: str
    digest: str

    def rules(self, *, approved: bool) -> RuleSet:
        found = self.texts.parse()
        return found if approved else RuleSet((), found.deny)


def read_project(folder: Path) -> ProjectRules | None:
    """Return the rules of a project's file; None if there is none. Raises Refused for an unusable file: it
    may deny something."""
    try:
        with find_path(folder, FILE) as place:
            if not place.exists:
                return None
            if not place.path.is_relative_to(folder):
                raise Refused(f"{FILE} is a link out of this folder. Replace it by a file.")
            data = place.read(LIMIT)
    except NotADirectoryError:
        return None
    except OSError as error:
        raise Refused(f"{FILE} cannot be read: {error.strerror or error}.") from error
    try:
        text = data.decode()
        texts = msgspec.convert(seldom.tomllib.loads(text), RuleTexts)
        texts.parse()
    except (ValueError, RecursionError, Refused) as error:  # from TOML, from its types, from a rule
        reason = str(error).rstrip(".")
        raise Refused(f"{FILE} cannot be used: {reason}. Repair it; until then nothing is done.") from error
    return ProjectRules(texts, text, digest(data))
