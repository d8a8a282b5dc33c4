"""Put the permissions of one conversation together from the settings, the home and the project's file."""

from pathlib import Path

from hone.core.permissions import Ask, Mode
from hone.runtime.permissions.decide import PathRules
from hone.runtime.permissions.owner import OwnerPermissions
from hone.runtime.permissions.project import StoredRules, read_project
from hone.runtime.permissions.rules import RuleSet, parse_rules
from hone.runtime.trust import OwnersList
from hone.settings import Settings


def permissions_for(
    home: Path, folder: Path, settings: Settings, ask: Ask, mode: Mode, *, confined: bool
) -> OwnerPermissions:
    texts, real = settings.permissions, home.resolve()
    general = parse_rules(texts.allow, texts.deny)
    stored = StoredRules(home / "permissions.json")
    approved = OwnersList(home / "approved.json")

    def rules() -> RuleSet:
        project = read_project(folder)
        own = project.rules(approved.items()) if project else RuleSet()
        return general | stored.of(folder) | own

    return OwnerPermissions(
        PathRules(folder, real, (real / "spill", real / "skills"), confined=confined),
        rules,
        lambda rule: stored.add(str(folder), "allow", rule),
        ask=ask,
        mode=mode,
        network=settings.network,
    )
