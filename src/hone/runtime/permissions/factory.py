"""Create the permissions of a conversation from the settings, the stored rules and the project's file."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from hone.core.documents import Documents
from hone.core.errors import Refused, SettingsError, StoreError
from hone.core.permissions import Ask, Mode, stricter
from hone.core.visible import path_to_text
from hone.runtime.permissions.approval import ProjectApprovals
from hone.runtime.permissions.decide import PathRules
from hone.runtime.permissions.owner import OwnerPermissions
from hone.runtime.permissions.project import FILE, Kind, StoredRules, read_project
from hone.runtime.permissions.rules import Rule, RuleSet, parse_rules
from hone.runtime.trust import Folders, OwnersList
from hone.settings import Settings


class SourcedRule(Struct, frozen=True):
    """A rule and its source. If it does not `count`, it was not approved."""

    kind: Kind
    rule: Rule
    source: str
    counts: bool = True


class PermissionsFactory:
    """`mode` is the requested mode; empty: the one in the settings. `say` tells the owner a sentence. It says
    nothing about an untrusted folder."""

    def __init__(
        self,
        home: Path,
        documents: Documents,
        settings: Settings,
        folders: Folders,
        ask: Ask,
        mode: Mode | str,
        say: Callable[[str], None],
    ) -> None:
        self.mode = Mode(mode or settings.mode)
        self.rules = StoredRules(documents)
        self.approvals = ProjectApprovals(OwnersList(documents, "approved.json"))
        self._home = home
        self._settings = settings
        self._folders = folders
        self._ask = ask
        self._say = say
        self._insists = bool(mode)
        try:
            self._general = parse_rules(settings.permissions.allow, settings.permissions.deny)
        except Refused as error:
            raise SettingsError(f"{home / 'hone.toml'}: permissions: {error}") from error

    def create(self, folder: Path, told: Mode | None = None, *, confined: bool = False) -> OwnerPermissions:
        """Return the permissions of one conversation in a folder. `told` is the last mode the conversation
        was told."""
        home = self._home.resolve()
        with suppress(Refused):  # the first request reports this, and is refused
            self._say(self.approvals.unapproved(folder) if self._folders.trusts(folder) else "")
        return OwnerPermissions(
            PathRules(folder, home, (home / "spill", home / "skills"), confined),
            lambda: self.effective(folder),
            lambda rule: self._remember(folder, rule),
            ask=self._ask,
            mode=self.mode_after(told),
            network=self._settings.sandbox_in(folder).network,
        )

    def mode_after(self, told: Mode | None) -> Mode:
        """Return the mode of a conversation that was told one: it keeps a stricter mode than usual unless
        another one was requested."""
        return stricter(self.mode, told) if told and not self._insists else self.mode

    def effective(self, folder: Path) -> RuleSet:
        """Return the rules that count in a folder. Raises HoneError if some cannot be read."""
        return self._general | self.rules.of(folder) | self.approvals.rules(folder)

    def sources(self, folder: Path) -> Iterator[SourcedRule]:
        """Yield every rule stored for a folder. Raises HoneError."""
        stored = self.rules.all()
        yield from _sourced(self._general, "hone.toml")
        for name, source in (("", "everywhere"), (path_to_text(folder), "this folder")):
            if name in stored:
                yield from _sourced(stored[name].parse(), source)
        found = read_project(folder)
        if found:
            yield from _sourced(found.texts.parse(), FILE, counts=self.approvals.is_approved(folder, found))

    def _remember(self, folder: Path, rule: Rule) -> bool:
        try:
            self.rules.add(path_to_text(folder), "allow", rule)
        except StoreError as error:
            self._say(f"{error} Your answer holds for this conversation.")
            return False
        return True


def _sourced(rules: RuleSet, source: str, *, counts: bool = True) -> Iterator[SourcedRule]:
    yield from (SourcedRule("allow", rule, source, counts) for rule in rules.allow)
    yield from (SourcedRule("deny", rule, source) for rule in rules.deny)
