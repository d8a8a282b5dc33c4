"""H2: templates as files: whole, for the owner only, read with care, and no use is lost or counted twice."""

import asyncio
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given

from hone.core.errors import Conflict, Corrupt, HoneError, Missing, Refused, StoreError
from hone.core.ids import SessionId
from hone.core.trust import Trust
from hone.core.value import replace
from hone.features.templates.store import Templates
from hone.features.templates.template_file import filed, from_dict, to_dict, unfiled
from hone.features.templates.values import Example, Template, WorkKind
from hone.files.documents import FileDocuments
from tests.conftest import Figures, Tier
from tests.given import templates

NOW = datetime(2026, 11, 15, tzinfo=UTC)
ONE = Template(
    "rows",
    WorkKind.FILE,
    SessionId("0a1b"),
    NOW,
    "Rows of files.",
    ("rows", "files"),
    (Example("read_file", '{"path":"ä.txt"}', "zwölf", 5, Trust.AGENT, Trust.LOCAL),),
)
COUNT = """
import asyncio, sys
from pathlib import Path
from hone.core.ids import SessionId
from hone.features.templates.store import Templates
from hone.files.documents import FileDocuments
async def main():
    for number in range(int(sys.argv[3])):
        await Templates(FileDocuments(Path(sys.argv[1]))).count("rows", SessionId(f"{sys.argv[2]}-{number}"))
asyncio.run(main())
"""


@given(templates)
def test_a_template_comes_back_from_a_dict_and_from_a_file_as_it_was(template: Template) -> None:
    assert from_dict(json.loads(json.dumps(to_dict(template)))) == template
    assert unfiled(filed(template), template.name) == template


async def test_a_template_is_kept_in_a_file_of_its_own_for_the_owner_only(home: Path) -> None:
    store = Templates(FileDocuments(home))
    await store.add(ONE)
    path = home / "templates" / "rows.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert await store.read("rows") == ONE
    assert await store.all() == ([ONE], [])
    with pytest.raises(Conflict, match="already"):
        await store.add(replace(ONE, work=WorkKind.CODE))
    assert await store.read("rows") == ONE
    await store.delete("rows")
    assert not path.exists()
    assert sorted(os.listdir(path.parent)) == [".lock"]
    for gone in (store.read, store.delete):
        with pytest.raises(Missing, match="There is no template rows"):
            await gone("rows")


DAMAGE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "nothing": (lambda data: b"", "not valid JSON"),
    "half of it": (lambda data: data[: len(data) // 2], "not valid JSON"),
    "no text": (lambda data: b"\xff" + data, "not valid JSON"),
    "a list": (lambda data: b"[]", "object"),
    "a field that is missing": (lambda data: edited(data, tags=...), "tags"),
    "a field that nobody knows": (lambda data: edited(data, colour="red"), "colour"),
    "a word where a number belongs": (lambda data: edited(data, effect="much"), "float"),
    "another name": (lambda data: edited(data, name="other"), "the file of other"),
    "another format": (lambda data: edited(data, format=9), "format 9"),
    "no examples": (lambda data: edited(data, examples=[]), "no examples"),
    "words of a hand": (lambda data: edited(data, description="mine"), "changed outside of Hone"),
    "a better label": (lambda data: data.replace(b'"local"', b'"owner"'), "changed outside of Hone"),
    "a label that is none": (lambda data: data.replace(b'"local"', b'"best"'), "no label"),
    "arguments that are none": (lambda data: data.replace(rb"{\"path\"", rb"[\"path\""), "JSON object"),
    "half a letter": (lambda data: data.replace(b"Rows of", rb"\ud800 of"), ""),
}


def edited(data: bytes, **fields: object) -> bytes:
    value = json.loads(data)
    for name, each in fields.items():
        if each is ...:
            del value[name]
        else:
            value[name] = each
    return json.dumps(value).encode()


@pytest.mark.parametrize("name", DAMAGE)
async def test_a_broken_or_edited_file_is_named_and_left_and_the_others_can_be_used(
    home: Path, name: str
) -> None:
    damage, reason = DAMAGE[name]
    store = Templates(FileDocuments(home))
    await store.add(ONE)
    await store.add(replace(ONE, name="sound"))
    path = home / "templates" / "rows.json"
    broken = damage(path.read_bytes())
    path.write_bytes(broken)
    with pytest.raises(Corrupt, match=r"rows\.json cannot be used: .*It is left as it is") as error:
        await store.read("rows")
    assert reason in str(error.value)
    for deed in (store.count("rows", SessionId("x")), store.rate("rows", 0.5)):
        with pytest.raises(Corrupt):
            await deed
    with pytest.raises(Conflict):
        await store.add(ONE)
    assert path.read_bytes() == broken
    found, faults = await store.all()
    assert ([each.name for each in found], faults) == (["sound"], [str(error.value)])
    await store.delete("rows")
    assert not path.exists()


async def test_what_is_no_file_is_not_followed_and_not_waited_for(home: Path, tmp_path: Path) -> None:
    store = Templates(FileDocuments(home))
    await store.add(ONE)
    folder = home / "templates"
    (tmp_path / "elsewhere.json").write_bytes(filed(replace(ONE, name="link")))
    (folder / "link.json").symlink_to(tmp_path / "elsewhere.json")
    os.mkfifo(folder / "pipe.json")
    (folder / "folder.json").mkdir()
    (folder / "Not A Name.json").write_bytes(b"{}")
    found, faults = await store.all()
    assert [each.name for each in found] == ["rows"]
    assert len(faults) == 3, faults
    await store.delete("link")
    assert (tmp_path / "elsewhere.json").exists()


@pytest.mark.parametrize(
    "name", ["", "..", "../x", "a/b", "a\0", "A", "-a", "a--b", "auto", "a" * 65, "ä", "a.b"]
)
async def test_a_name_that_is_none_is_refused_at_every_door(home: Path, name: str) -> None:
    store = Templates(FileDocuments(home))
    for deed in (
        store.read(name),
        store.delete(name),
        store.add(replace(ONE, name=name)),
        store.rate(name, 1.0),
    ):
        with pytest.raises(Refused, match="cannot be a template's name"):
            await deed
    assert not (home / "templates").exists()


async def test_a_session_counts_once_and_not_for_a_template_that_is_younger(home: Path) -> None:
    store = Templates(FileDocuments(home))
    await store.add(ONE)
    for id in ("a", "b", "a"):
        await store.count("rows", SessionId(id), NOW)
    await store.count("rows", SessionId("older"), NOW - timedelta(days=1))
    assert (await store.read("rows")).uses == ("a", "b")
    await store.rate("rows", 0.25)
    assert (await store.read("rows")).effect == 0.25


async def test_processes_that_count_at_once_lose_nothing(home: Path, tier: Tier, figures: Figures) -> None:
    each, store = tier.size(short=10, full=200), Templates(FileDocuments(home))
    await store.add(ONE)
    commands = [[sys.executable, "-c", COUNT, str(home), name, str(each)] for name in "ab"]
    done = await asyncio.gather(
        *(
            asyncio.to_thread(subprocess.run, line, capture_output=True, text=True, timeout=120)
            for line in commands
        )
    )
    assert [process.stderr for process in done] == ["", ""]
    uses = (await store.read("rows")).uses
    lost = 2 * each - len(set(uses))
    figures.tally(2 * each, lost=lost, note="uses counted by two processes at once")
    assert sorted(uses) == sorted(f"{name}-{number}" for name in "ab" for number in range(each))


async def test_where_nothing_can_be_written_the_file_stays_and_it_is_said(home: Path) -> None:
    store = Templates(FileDocuments(home))
    await store.add(ONE)
    lock = home / "templates" / ".lock"
    lock.unlink()
    lock.mkdir()
    for deed in (
        store.count("rows", SessionId("x")),
        store.add(replace(ONE, name="b")),
        store.delete("rows"),
    ):
        with pytest.raises(StoreError, match=r"cannot be (written|removed)"):
            await deed
    assert await store.read("rows") == ONE
    (home / "templates").rename(home / "moved")
    (home / "templates").write_text("in the way")
    with pytest.raises(HoneError):
        await store.all()
