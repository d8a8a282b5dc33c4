"""How little is loaded before Hone begins to work. What is counted is modules; nobody looks at a clock."""

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path

from hone import __version__
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import echo
from tests.cli.driving import HONE, PATIENCE, environment
from tests.conftest import Figures

ASKED = """
import sys
from hone.cli.main import perform
code = perform(["run", "hello"])
ours = [module for name, module in sys.modules.items() if name.partition(".")[0] == "hone"]
classes = {each for module in ours for each in vars(module).values() if isinstance(each, type)}
values = [each for each in classes if "__dataclass_params__" in vars(each)]
print(code, len(sys.modules), len(ours), sum(each.__dataclass_params__.frozen for each in values))
"""
MODULES, OURS, COSTLY = 378, 180, 8
"""A little more than there are. A module costs a quarter of a millisecond, and a frozen class that the
standard decorator made costs half of one (see hone.core.value)."""


async def heard(home: Path, *command: str) -> bytes:
    async with FakeProvider(echo) as stage, asyncio.timeout(PATIENCE):
        process = await asyncio.create_subprocess_exec(
            *command, env=environment(home, stage), stdin=DEVNULL, stdout=PIPE
        )
        out, _ = await process.communicate()
        assert process.returncode == 0
    return out


async def test_one_question_and_its_answer_take_few_modules(home: Path, figures: Figures) -> None:
    out = await heard(home, sys.executable, "-c", ASKED)
    code, modules, ours, costly = map(int, out.split()[-4:])
    figures(f"{modules} modules, {ours} of them Hone's, {costly} costly values")
    assert (code, modules <= MODULES, ours <= OURS, costly <= COSTLY) == (0, True, True, True)


async def test_the_version_takes_next_to_none(home: Path) -> None:
    asked = "import sys; from hone.__main__ import main; sys.argv[1:] = ['--version']; main()"
    told = "; print({'click', 'typing', 're', 'pathlib', 'hone.cli.main'} & set(sys.modules))"
    out = await heard(home, sys.executable, "-c", asked + told)
    assert out.decode().splitlines() == [f"hone {__version__}", "set()"]
    assert await heard(home, *HONE, "--version") == f"hone {__version__}\n".encode()


async def test_a_version_that_cannot_be_written_is_said_like_anything_else(home: Path) -> None:
    with open("/dev/full", "wb") as full:
        process = await asyncio.create_subprocess_exec(*HONE, "--version", stdout=full, stderr=PIPE)
        _, err = await process.communicate()
    said = b"Hone cannot read or write something: No space left on device.\n"
    assert (process.returncode, err) == (1, said)
