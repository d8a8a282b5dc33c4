"""L1, L2: the places that matter are written and read only where the rules say so, in every mode, by file
tools and by commands, with an owner who agrees, one who does not, and nobody."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest

from hone import Hone
from hone.core.messages import ToolCall
from hone.core.permissions import Answer, Mode, nobody
from hone.core.tool import Outcome
from hone.core.tool_context import ToolContext
from hone.models.scripted import Scripted, call, lines
from hone.runtime.task_runner import ignore
from tests.conftest import Figures, Tier
from tests.rig import asked
from tests.runtime.permissions import places
from tests.runtime.permissions.places import NEW, OLD, furnish, written
from tests.tools.shells import Owner

WRITE_ALL = """while read -r path; do echo '# new words' > "$path"; done < places.txt 2> /dev/null"""
WRITE_ALL_IN_PYTHON = """\
for path in open("places.txt").read().split("\\n"):
    try:
        open(path, "w").write("# new words\\n")
    except OSError:
        pass
"""
READ_ALL = 'while read -r path; do cat "$path"; done < places.txt 2> /dev/null; true'
NAMES = ["hone.toml", "serve.key", "permissions.json", "hone.db", "USER.md"]


@dataclass(frozen=True)
class Situation:
    """`answer` is None where nobody is there."""

    mode: Mode
    answer: Answer | None

    @property
    def consents(self) -> bool:
        return self.answer is not None and self.answer.is_yes

    def may_write(self, *, sensitive: bool) -> bool:
        """What the rules say, in words of their own."""
        if self.mode is Mode.PLAN:
            return False
        is_free = self.mode is Mode.FULL or (self.mode is Mode.AUTO and not sensitive)
        return is_free or self.consents

    def may_read_secrets(self) -> bool:
        return self.mode is Mode.FULL or self.consents

    def may_write_by_command(self) -> bool:
        return self.mode in (Mode.AUTO, Mode.FULL) or (self.mode is Mode.ASK and self.consents)


SITUATIONS = [Situation(*each) for each in product(Mode, (Answer.ONCE, Answer.NO, None))]


@dataclass(frozen=True)
class Ground:
    """A person's home with a project in it."""

    person: Path
    folder: Path
    outside: list[Path]
    sensitive: list[Path]
    ordinary: list[Path]

    @property
    def all(self) -> list[Path]:
        return [*self.outside, *self.sensitive, *self.ordinary]

    def named(self, path: Path) -> str:
        """As a model would write it."""
        if path.is_relative_to(self.folder):
            return str(path.relative_to(self.folder))
        return f"~/{path.relative_to(self.person)}"

    def list(self, paths: Sequence[Path]) -> None:
        """Put the paths where commands find them."""
        (self.folder / "places.txt").write_text("".join(f"{path}\n" for path in paths))


def grounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, situations: Sequence[Situation] = SITUATIONS
) -> Iterator[tuple[Situation, Ground]]:
    """Yield each situation with new files."""
    for number, situation in enumerate(situations):
        person = tmp_path / f"person{number}"
        folder = person / "work" / "project"
        folder.mkdir(parents=True)
        monkeypatch.setenv("HOME", str(person))
        outside = furnish(person, [*places.HOME, *places.MORE_HOME])
        sensitive = furnish(folder, [*places.PROJECT, *places.MORE_PROJECT])
        for git in (".git", ".git/modules/sub", "sub/.git"):
            (folder / git / "HEAD").write_text("ref: refs/heads/main\n")
            (folder / git / "objects").mkdir()
            (folder / git / "refs").mkdir()
        yield situation, Ground(person, folder, outside, sensitive, furnish(folder, places.ORDINARY))


def drawn(tier: Tier) -> list[Situation]:
    """Some situations for what takes long."""
    return [SITUATIONS[draw.index] for draw in tier.draws(short=4, full=len(SITUATIONS))]


async def perform(situation: Situation, folder: Path, calls: Sequence[ToolCall]) -> list[Outcome]:
    """Make these calls with the tools and the permissions of a whole Hone."""
    ask = nobody if situation.answer is None else Owner(situation.answer).ask
    async with Hone(model=Scripted(lines("-")), folder=folder, ask=ask, mode=situation.mode) as hone:
        agent = (await hone.session()).agent
        context = ToolContext(agent, asked("go"), ignore, hone.permissions.create(folder))
        return [await agent.toolbox[each.name].run(each, context) for each in calls]


def test_there_are_19_places_and_40_more() -> None:
    assert len({*places.HOME, *places.PROJECT}) == 19
    assert len({*places.MORE_HOME, *places.MORE_PROJECT}) == 40


@pytest.mark.parametrize("tool", ["write_file", "patch"])
async def test_file_tools_write_only_where_the_rules_say_so(
    tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figures: Figures
) -> None:
    arguments = {"content": NEW} if tool == "write_file" else {"find": OLD.strip(), "replace": NEW.strip()}
    tried, wrong, missing = 0, [], []
    for situation, there in grounds(tmp_path, monkeypatch):
        calls = [call(tool, path=there.named(path), **arguments) for path in there.all]
        await perform(situation, there.folder, calls)
        guarded = [*there.outside, *there.sensitive] if situation.may_write(sensitive=True) else []
        allowed = {*guarded, *(there.ordinary if situation.may_write(sensitive=False) else [])}
        found = {*written(there.all)}
        tried += len(there.all)
        wrong += [(situation, path) for path in found - allowed]
        missing += [(situation, path) for path in allowed - found]
    figures.tally(tried, got_in=len(wrong), lost=len(missing), note=f"places, by {tool}")
    assert (wrong, missing) == ([], [])


@pytest.mark.parametrize("tool", ["terminal", "execute_code"])
async def test_commands_write_only_where_the_rules_say_so(
    tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tier: Tier, figures: Figures
) -> None:
    run = {"command": WRITE_ALL} if tool == "terminal" else {"code": WRITE_ALL_IN_PYTHON}
    tried, wrong, missing = 0, [], []
    for situation, there in grounds(tmp_path, monkeypatch, drawn(tier)):
        there.list(there.all)
        await perform(situation, there.folder, [call(tool, **run)])
        found = {*written(there.all)}
        allowed = {*there.ordinary} if situation.may_write_by_command() else set()
        tried += len(there.all)
        wrong += [(situation, path) for path in found - allowed]
        missing += [(situation, path) for path in allowed - found]
    figures.tally(tried, got_in=len(wrong), lost=len(missing), note=f"places, by {tool}")
    assert (wrong, missing) == ([], [])


@pytest.mark.parametrize("tool", ["read_file", "search_files", "terminal"])
async def test_secrets_are_read_only_where_the_rules_say_so(
    tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tier: Tier, figures: Figures
) -> None:
    """Commands find nothing of a person's home, whatever the owner says."""
    tried, wrong, missing = 0, [], []
    situations = drawn(tier) if tool == "terminal" else SITUATIONS
    for situation, there in grounds(tmp_path, monkeypatch, situations):
        own = [] if tool == "terminal" else furnish(there.folder, places.OWN_SECRETS)
        secrets = [*furnish(there.person, places.SECRETS), *own]
        for number, path in enumerate(secrets):
            path.write_text(f"canary{number:03}\n")
        there.list(secrets)
        calls = {
            "read_file": [call("read_file", path=there.named(path)) for path in secrets],
            "search_files": [call("search_files", pattern="canary", path=str(path)) for path in secrets],
            "terminal": [call("terminal", command=READ_ALL)],
        }[tool]
        said = "".join(each.text for each in await perform(situation, there.folder, calls))
        read = {path for number, path in enumerate(secrets) if f"canary{number:03}" in said}
        allowed = {*secrets} if situation.may_read_secrets() and tool != "terminal" else set()
        tried += len(secrets)
        wrong += [(situation, path) for path in read - allowed]
        missing += [(situation, path) for path in allowed - read]
    figures.tally(tried, got_in=len(wrong), lost=len(missing), note=f"secrets, by {tool}")
    assert (wrong, missing) == ([], [])


async def test_a_search_of_a_whole_folder_leaves_secrets_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for situation, there in grounds(tmp_path, monkeypatch):
        for path in furnish(there.folder, [*places.OWN_SECRETS, "src/main.py"]):
            path.write_text("a canary\n")
        [found] = await perform(situation, there.folder, [call("search_files", pattern="canary")])
        assert "src/main.py:1: a canary" in found.text
        assert (".env" in found.text) is (situation.mode is Mode.FULL), situation


async def test_hones_home_is_closed_to_file_tools_in_every_mode(
    home: Path, tmp_path: Path, figures: Figures
) -> None:
    (home / "serve.key").write_text("canary")
    calls = [
        each
        for path in (str(home / name) for name in NAMES)
        for each in (
            call("read_file", path=path),
            call("write_file", path=path, content="mine"),
            call("patch", path=path, find="canary", replace="mine"),
            call("search_files", path=path, pattern="canary"),
        )
    ]
    opened = []
    for situation in SITUATIONS:
        results = await perform(situation, tmp_path, [*calls, call("search_files", path=str(home), glob="*")])
        opened += [each.text for each in results if "Hone's home is closed" not in each.text]
    figures.tally((len(calls) + 1) * len(SITUATIONS), got_in=len(opened), note="Hone's home")
    assert opened == []
    assert (home / "serve.key").read_text() == "canary"
    assert not (home / "hone.toml").exists()
