"""Hone without one of its features, on a home that holds the feature's data and names it in its settings.

Each command runs in a process in which the feature is not registered and its package cannot be imported.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hone import features
from hone.app import Hone
from hone.core.loading import import_object
from hone.core.part import HOOKS, Part
from hone.registry import FEATURES, Feature
from hone.settings import Settings
from tests.golden import PATIENCE, Ended, environment, unpack
from tests.provider import Call, Provider, Say

FIXTURES = Path(__file__).parent.parent / "fixtures"
SESSIONS: dict[str, str] = json.loads((FIXTURES / "home-beec753" / "sessions.json").read_text())
WITHOUT = {
    "templates": ("templates", "experiments", "attribution"),
    "experiments": ("experiments", "attribution"),
}
"""Experiments measure templates as well, and an ablation is an experiment: features that import another."""

LACKING = """
import sys

gone = sys.argv[1].split(",")


class Gone:
    def find_spec(self, name, path=None, target=None):
        if any(f"{name}.".startswith(f"hone.features.{each}.") for each in gone):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Gone())
from hone import registry

registry.FEATURES = tuple(each for each in registry.FEATURES if each.name not in gone)
from hone.cli import main

if hasattr(main, "COMMANDS"):
    prefixes = tuple(f"hone.features.{each}." for each in gone)
    main.COMMANDS = {name: place for name, place in main.COMMANDS.items() if not place.startswith(prefixes)}
sys.exit(main.perform(sys.argv[2:]))
"""
OWN = {
    "acp": "acp",
    "agents": "agents",
    "attribution": "why",
    "backends": "backends",
    "backups": "backup",
    "checkouts": "pull",
    "checkpoints": "rewind",
    "checks": "skills checks",
    "curator": "curator",
    "erasing": "erase",
    "experiments": "experiment",
    "hooks": "hooks",
    "imports": "import",
    "lab": "lab",
    "local_models": "models",
    "mcp": "mcp",
    "moving": "move",
    "payback": "payback",
    "recall": "recall",
    "recheck": "recheck",
    "sharing": "skills sync",
    "team": "team",
    "telemetry": "",
    "templates": "templates",
    "traces": "traces",
    "uninstalling": "uninstall",
    "users": "users",
}
"""The command of each feature; one that has only commands below the kernel's, one of those; or none."""
TENDING = {"backends", "checkpoints", "curator", "erasing", "templates"}
"""What hooks into reviews, into changes of what is known, or into the examination of a home."""


class Home:
    """The home that an older Hone left, and a Hone that lacks one feature."""

    def __init__(self, root: Path, feature: str) -> None:
        self.path, self.folder, self.feature = root / "home", root / "elsewhere", feature
        self.folder.mkdir(parents=True)
        self.path.mkdir(mode=0o700)
        unpack(FIXTURES / "home-beec753.tar.gz", self.path)

    def hone(self, *arguments: str, provider: Provider | None = None, **variables: str) -> Ended:
        gone = ",".join(WITHOUT.get(self.feature, (self.feature,)))
        done = subprocess.run(
            (sys.executable, "-c", LACKING, gone, *arguments),
            env=environment(self.path, provider, **variables),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        ended = Ended(done.returncode, done.stdout.decode(), done.stderr.decode())
        assert "Traceback" not in ended.err + ended.out, ended.err
        return ended

    def said(self, *arguments: str, provider: Provider | None = None) -> str:
        """Return what a command prints that must succeed."""
        ended = self.hone(*arguments, provider=provider)
        assert ended.code == 0, ended
        return ended.out


@pytest.fixture(params=sorted(OWN))
def lacking(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    return Home(tmp_path / "old", request.param)


@pytest.fixture(
    params=[each if each in TENDING else pytest.param(each, marks=pytest.mark.long) for each in sorted(OWN)]
)
def looked_after(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    """The same, for stories of many processes: in the short tier only without what has a part in them."""
    return Home(tmp_path / "old", request.param)


def test_the_registry_names_every_package_below_features() -> None:
    [below] = features.__path__
    packages = sorted(path.parent.name for path in Path(below).glob("*/__init__.py"))
    assert sorted(each.name for each in FEATURES) == packages == sorted(OWN)


def test_without_a_feature_help_lacks_its_command_and_the_others_are_there(lacking: Home) -> None:
    listed = lacking.said("--help").partition("Commands:")[2].splitlines()
    commands = {line.split()[0] for line in listed if line.startswith("  ") and line[2:3].strip()}
    below = lacking.said("skills", "--help").partition("Commands:")[2].splitlines()
    commands |= {f"skills {line.split()[0]}" for line in below if line.startswith("  ") and line[2:3].strip()}
    gone = {"", *(OWN[each] for each in WITHOUT.get(lacking.feature, (lacking.feature,)))}
    assert not gone & commands
    assert {*OWN.values(), "run", "memory", "doctor"} - gone <= commands
    if not OWN[lacking.feature]:
        return
    ended = lacking.hone(*OWN[lacking.feature].split(), "--help")
    assert (ended.code, ended.out) == (2, "")
    name = OWN[lacking.feature].split()[-1]
    assert re.search(f"[Nn]o (such )?command '{name}'", ended.err), "or with a near name"


def test_without_a_feature_a_conversation_begins_and_an_old_one_continues(lacking: Home) -> None:
    with Provider(Say("Hello."), Say("Yes.")) as provider:
        assert lacking.said("run", "-q", "hi", provider=provider) == "Hello.\n"
        assert lacking.said("run", "-q", "-r", SESSIONS["seeded"], "Are they?", provider=provider) == "Yes.\n"
    offered = (json.loads(body)["tools"] for body in provider.bodies)
    first, second = ({tool["function"]["name"] for tool in tools} for tools in offered)
    assert ("memory_backend" in first) == ("memory_backend" in second) == (lacking.feature != "backends")
    assert {"memory", "skill_view", "session_search"} <= set(first)


def test_without_a_feature_what_is_known_can_be_read_and_taken_back(looked_after: Home) -> None:
    assert "Tuesdays" in looked_after.said("memory", "show")
    assert "report-writing" in looked_after.said("skills", "show", "report-writing")
    assert SESSIONS["calls"][:6] in looked_after.said("sessions", "list")
    before = json.loads(looked_after.said("log", "--json", "-n", "100"))
    looked_after.said("undo", "1")
    after = json.loads(looked_after.said("log", "--json", "-n", "100"))
    assert len(after) == len(before) + 1
    assert (after[0]["deed"], after[0]["about"]) == ("undo", 1)


def test_without_a_feature_a_due_review_runs_and_the_home_is_examined(looked_after: Home) -> None:
    words = "Name months in full, please."
    keep = Call.of("y1", "memory", action="add", target="user", text="Name months in full.", evidence=[words])
    with Provider(Say("", [keep]), Say("Kept how to name months.")) as provider:
        looked_after.said("worker", "--once", provider=provider)
    assert (looked_after.path / "USER.md").read_text().endswith("- Name months in full.\n")
    job = json.loads(looked_after.said("reviews", "show", "2", "--json"))
    assert (job["state"], len(job["made"])) == ("done", 1)
    (looked_after.path / "memories.db").unlink()
    examined = looked_after.said("doctor", "--deep")
    assert f"home: {looked_after.path}" in examined
    assert ("templates: all of them can be read (1)" in examined) == (looked_after.feature != "templates")


def test_without_a_feature_a_session_is_deleted_and_nothing_asks_for_the_feature(lacking: Home) -> None:
    ended = lacking.hone("sessions", "delete", SESSIONS["calls"], "--yes", "--lessons", "withdraw")
    assert ended.code == 0, ended
    gone = WITHOUT.get(lacking.feature, (lacking.feature,))
    assert ("hone templates delete" in ended.out + ended.err) == ("templates" not in gone)
    assert ("hone experiment delete" in ended.out + ended.err) == ("experiments" not in gone)


def test_without_backends_a_backend_in_the_settings_is_left_alone(tmp_path: Path) -> None:
    home = Home(tmp_path / "old", "backends")
    stored = (home.path / "memories.db").read_bytes()
    assert '"backend":"sqlite"' in home.said("config")
    with Provider(Say("Hello.")) as provider:
        assert home.said("run", "-q", "hi", provider=provider) == "Hello.\n"
    assert b"hone-memory" not in provider.bodies[0]
    assert (home.path / "memories.db").read_bytes() == stored


def test_without_templates_one_that_is_asked_for_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with Provider() as provider:
        ended = Home(tmp_path / "old", "templates").hone(
            "run", "-q", "--template", "sums", "hi", provider=provider
        )
    assert (ended.code, ended.out) == (1, "")
    assert "This installation of Hone has no templates." in ended.err


def test_without_local_models_one_that_is_asked_for_is_refused_in_a_sentence(tmp_path: Path) -> None:
    ended = Home(tmp_path / "old", "local_models").hone("run", "-q", "-m", "local/smollm2", "hi")
    assert (ended.code, ended.out) == (2, "")
    assert "'local/smollm2' does not name a known provider" in ended.err


def parts(home: Path) -> Iterator[tuple[Feature, Part]]:
    hone = Hone(home=home, settings=Settings())
    for feature in FEATURES:
        if feature.part:
            yield feature, import_object(feature.part)(hone)


def test_each_feature_declares_the_hooks_that_its_part_implements(tmp_path: Path) -> None:
    for feature, part in parts(tmp_path):
        made = {name for name in HOOKS if getattr(type(part), name) is not getattr(Part, name)}
        assert set(feature.hooks) == made, feature.name
        assert part.name == feature.name


def test_each_feature_declares_the_providers_that_its_part_connects_to(tmp_path: Path) -> None:
    for feature, part in parts(tmp_path):
        assert set(feature.providers) == set(part.models()), feature.name
