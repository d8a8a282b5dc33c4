"""Where rules are kept: in the settings, in Hone's home by folder, and in a project's own file.

A project's file, `.hone/permissions.toml`, can deny. What it allows counts only after the owner has approved
that very file with `hone trust`.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec

from hone.core import seldom
from hone.core.errors import Refused, StoreError
from hone.core.messages import digest
from hone.core.visible import path_to_text
from hone.files.atomic import make_folder, write
from hone.files.locks import acquire, release
from hone.files.opening import find_path
from hone.runtime.permissions.rules import Rule, RuleSet, parse_rules

FILE = ".hone/permissions.toml"
LIMIT = 64_000
Kind = Literal["allow", "deny"]


class RuleTexts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def parse(self) -> RuleSet:
        return parse_rules(self.allow, self.deny)


class StoredRules:
    """The rules that the owner gave by answering or by command, in one file of the home. Those under the
    empty folder hold everywhere. A file that cannot be read is an error: it may deny something."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def all(self) -> Mapping[str, RuleTexts]:
        try:
            data = self.path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except OSError as error:
            raise StoreError(f"{self.path} cannot be read: {error.strerror}.") from error
        try:
            found = msgspec.json.decode(data, type=dict[str, RuleTexts])
            for each in found.values():
                each.parse()
        except (ValueError, Refused) as error:
            reason = str(error).rstrip(".")
            raise StoreError(f"{self.path} is damaged: {reason}. Repair or remove it.") from error
        return found

    def of(self, folder: Path) -> RuleSet:
        found = self.all()
        return found.get("", RuleTexts()).parse() | found.get(path_to_text(folder), RuleTexts()).parse()

    def add(self, folder: str, kind: Kind, rule: Rule) -> None:
        self._change(folder, kind, lambda known: (*known, str(rule)))

    def remove(self, folder: str, rule: Rule) -> bool:
        """Return whether there was such a rule."""
        known = self.all().get(folder, RuleTexts())
        kinds: Sequence[Kind] = ("allow", "deny")
        found = [kind for kind in kinds if str(rule) in getattr(known, kind)]
        for kind in found:
            self._change(folder, kind, lambda kept: (each for each in kept if each != str(rule)))
        return bool(found)

    def _change(self, folder: str, kind: Kind, change: Callable[[Sequence[str]], Iterable[str]]) -> None:
        try:
            with self._locked():
                known = dict(self.all())
                texts = msgspec.structs.asdict(known.get(folder, RuleTexts()))
                texts[kind] = tuple(dict.fromkeys(change(texts[kind])))
                known[folder] = RuleTexts(**texts)
                kept = {name: rules for name, rules in sorted(known.items()) if rules != RuleTexts()}
                data = json.dumps(msgspec.to_builtins(kept), indent=1, ensure_ascii=False)
                write(self.path, data.encode())
        except OSError as error:
            raise StoreError(f"{self.path} cannot be written: {error.strerror}.") from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Let one process change the file at a time."""
        make_folder(self.path.parent)
        handle = acquire(self.path.with_suffix(".lock"))
        try:
            yield
        finally:
            release(handle)


class ProjectRules(msgspec.Struct, frozen=True):
    """What a project's own file says. `digest` is that of its bytes, `text` what the owner is shown."""

    texts: RuleTexts
    text: str
    digest: str

    def rules(self, *, approved: bool) -> RuleSet:
        found = self.texts.parse()
        return found if approved else RuleSet((), found.deny)


def read_project(folder: Path) -> ProjectRules | None:
    """Return the rules of a project's file; None if there is none. Raises Refused for a file that cannot be
    used: it may deny something."""
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
    except (ValueError, RecursionError, Refused) as error:  # of TOML, of its types, of a rule
        reason = str(error).rstrip(".")
        raise Refused(f"{FILE} cannot be used: {reason}. Repair it; until then nothing is done.") from error
    return ProjectRules(texts, text, digest(data))
