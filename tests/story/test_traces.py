"""B6: conversations go out as their leaves, each content once, and come back with the same hashes."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from hone.app import Hone
from hone.cli.main import perform
from hone.core.ids import SessionId
from hone.core.messages import assistant
from hone.core.permit import REVIEW
from hone.core.ports import StoredSession
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.core.turn import Origin
from hone.models.scripted import Scripted, call, rounds
from hone.runtime.session import Session
from tests.cli.driving import Ended, environment, hone, terminal
from tests.conftest import Figures
from tests.docs.pages import ROOT, blocks
from tests.stores.worker import OpenedSessions

KEY = "sk-ant-api03-" + "aB3dE5fG7hJ9" * 7


@dataclass
class Tale:
    """One conversation of a home, and every line of messages there was in it."""

    session: Session
    lines: list[Transcript] = field(default_factory=list)

    def leaves(self) -> set[str]:
        """By comparing each line with each other, hash by hash."""
        chains = {tuple(node.hash for node in line.nodes) for line in self.lines}
        return {
            one[-1]
            for one in chains
            if not any(other != one and other[: len(one)] == one for other in chains)
        }

    def contents(self) -> set[str]:
        return {node.digest for line in self.lines for node in line.nodes}


async def tell(home: Path, folder: Path, *extra: str) -> Tale:
    """A session with five reviews, the last one right before a compression, then a branch and a last word."""
    (folder / "a.txt").write_text("row\n" * 30)
    script = rounds(assistant("Looking.", call("read_file", path="a.txt")), "Thirty rows.")
    async with Hone(home=home, model=Scripted(script), folder=folder) as agent:
        session = await agent.session()
        tale = Tale(session)
        for number in range(5):
            await session.send(f"question {number}: how many rows?")
            review = session.fork(REVIEW, Origin.REVIEW)
            await review.send("What is to be learned?")
            tale.lines.append(review.transcript)
        whole = session.transcript
        assert await session.compact()
        for word in ("and now?", *extra):
            await session.send(word)
        branch = await agent.resume(await agent.branch(session.id, 3))
        await branch.send("another way")
        stored = [await agent.sessions.load(each.header.id) for each in await agent.sessions.list(None, None)]
        tale.lines += [whole, session.transcript, branch.transcript, *(each.transcript for each in stored)]
        assert len(stored) == 1 + 5 + 1 + 1
    return tale


async def traces(home: Path, *arguments: str) -> Ended:
    """The command in this process: most of what it is asked here needs none of its own."""
    out, err = StringIO(), StringIO()

    def act() -> int:
        with redirect_stdout(out), redirect_stderr(err):
            return perform(["--home", str(home), "traces", *arguments])

    return Ended(await asyncio.to_thread(act), out.getvalue(), err.getvalue())


async def command(home: Path, *arguments: str, piped: bytes | None = None) -> Ended:
    return await hone("traces", *arguments, env=environment(home), piped=piped)


def parsed(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def of(kind: str, lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [line for line in lines if line["kind"] == kind]


async def loaded(home: Path) -> dict[SessionId, StoredSession]:
    store = OpenedSessions.open(home / "hone.db")
    found = {each.header.id: await store.load(each.header.id) for each in await store.list(None, None)}
    await store.close()
    return found


def hashes(found: dict[SessionId, StoredSession]) -> dict[SessionId, list[str]]:
    return {id: [node.hash for node in stored.transcript.nodes] for id, stored in found.items()}


async def test_five_reviews_and_a_compression_give_exactly_the_leaves_and_come_back_with_the_same_hashes(
    home: Path, tmp_path: Path, figures: Figures
) -> None:
    tale = await tell(home, tmp_path)
    file, there = tmp_path / "traces.jsonl", tmp_path / "there"
    exported = await command(home, "export", "--raw", "-o", str(file))
    assert (exported.code, "secrets that were said are in it" in exported.err) == (0, True)
    lines = parsed(file.read_text())

    leaves = of("leaf", lines)
    assert sorted(leaf["hash"] for leaf in leaves) == sorted(tale.leaves())
    contents = [line["digest"] for line in of("content", lines)]
    assert sorted(contents) == sorted(tale.contents())
    nodes = [said["hash"] for leaf in leaves for said in leaf["messages"]]
    assert sorted(nodes) == sorted({node.hash for line in tale.lines for node in line.nodes})
    assert len(of("prefix", lines)) == 1
    before = await loaded(home)
    assert sorted(each["session"] for leaf in leaves for each in leaf["sessions"]) == sorted(before)

    stored = await command(there, "import", str(file), "--own", "--yes")
    assert (stored.code, stored.err) == (0, "")
    assert "8 new, 0 longer than here, 0 here already.\nStored 8 sessions.\n" in stored.out
    after = await loaded(there)
    assert hashes(after) == hashes(before)
    for id, was in before.items():
        labels = [(node.trust, node.at, node.encoded) for node in was.transcript.nodes]
        assert [(node.trust, node.at, node.encoded) for node in after[id].transcript.nodes] == labels
        assert after[id].header.parent == was.header.parent
    again = await traces(there, "import", str(file), "--own", "--yes")
    assert "0 new, 0 longer than here, 8 here already.\nThere is nothing to store.\n" in again.out
    assert hashes(await loaded(there)) == hashes(before)

    second = parsed((await traces(there, "export", "--raw")).out)
    assert {leaf["hash"] for leaf in of("leaf", second)} == tale.leaves()
    assert sorted(line["digest"] for line in of("content", second)) == sorted(contents)
    figures(
        f"{len(before)} sessions, {len(leaves)} leaves, {len(contents)} contents, each once; 0 hashes differ"
    )


async def test_a_secret_stays_at_home_and_so_does_every_hash_that_could_give_it_away(
    home: Path, tmp_path: Path
) -> None:
    tale = await tell(home, tmp_path, f"my key is {KEY}")
    file, there = tmp_path / "traces.jsonl", tmp_path / "there"
    exported = await traces(home, "export", "-o", str(file))
    assert (exported.code, exported.err) == (0, "")
    assert "secrets are taken out of 1 message" in exported.out
    text = file.read_text()
    spoken = next(node for node in tale.session.transcript.nodes if KEY in node.message.text)
    at = tale.session.transcript.nodes.index(spoken)
    told = [node.hash for node in tale.session.transcript.nodes[at:]]
    assert not [each for each in (KEY, spoken.digest, *told) if each in text]
    marked = [line for line in of("content", parsed(text)) if line.get("redacted")]
    assert [part["text"] for line in marked for part in line["parts"]] == [
        "my key is [redacted: Anthropic key]"
    ]

    assert (await traces(there, "import", str(file), "--yes")).code == 0
    before, after = hashes(await loaded(home)), hashes(await loaded(there))
    id = tale.session.id
    assert after[id][:at] == before[id][:at]
    assert len(after[id]) == len(before[id])
    assert {each: after[each] for each in after if each != id} == {
        each: before[each] for each in before if each != id
    }
    back = await traces(home, "import", str(file), "--yes")
    assert f"continued differently here and stay:\n  {id}\n" in back.out
    assert hashes(await loaded(home)) == before


async def test_a_file_that_nobody_vouches_for_brings_no_words_of_the_owner(
    home: Path, tmp_path: Path
) -> None:
    await tell(home, tmp_path)
    text = (await traces(home, "export", "--raw")).out
    there = tmp_path / "there"
    stored = await command(there, "import", "-", "--yes", piped=text.encode())
    assert "Their words count as foreign" in stored.out
    labels = {node.trust for each in (await loaded(there)).values() for node in each.transcript.nodes}
    assert labels == {Trust.FOREIGN}


async def test_lines_that_do_not_hold_are_counted_and_left_out_and_the_rest_is_stored(
    home: Path, tmp_path: Path
) -> None:
    tale = await tell(home, tmp_path)
    good = (await traces(home, "export", "--raw", "--session", tale.session.id[:8])).out.splitlines()
    last = json.loads(good[-1])
    lost = {each["session"] for each in last["sessions"]}
    last["messages"][-1]["trust"] = "the owner's, really"
    bad = ["{", '{"kind":"wish"}', "[" * 100_000, '{"kind":"content","digest":"0","role":"user","parts":[]}']
    file, there = tmp_path / "bad.jsonl", tmp_path / "there"
    file.write_text("\n".join([*good[:3], *bad, *good[3:-1], json.dumps(last), ""]))
    tried = await traces(there, "import", str(file), "--dry-run")
    assert tried.code == 1
    assert "5 lines did not hold and were left out:\n  line 4: " in tried.out
    assert await loaded(there) == {}
    refused = await traces(there, "import", str(file))
    assert (refused.code, "Add --yes" in refused.err, await loaded(there)) == (2, True, {})
    stored = await traces(there, "import", str(file), "--yes")
    assert stored.code == 1
    before, after = hashes(await loaded(home)), hashes(await loaded(there))
    assert after == {id: line for id, line in before.items() if id not in lost}
    assert len(after) == 8 - len(lost) > 0


@pytest.mark.parametrize(
    "text", ["", "hello", '{"kind":"leaf"}', '{"kind":"traces","version":9,"redacted":true}']
)
async def test_what_is_no_file_of_traces_is_refused_in_a_sentence(
    home: Path, tmp_path: Path, text: str
) -> None:
    (tmp_path / "file").write_text(text)
    for file in ("file", "nowhere"):
        refused = await traces(home, "import", str(tmp_path / file), "--yes")
        assert (refused.code, refused.out, refused.err.count("\n")) == (1, "", 1)


async def test_the_owner_sees_what_is_new_and_is_asked(home: Path, tmp_path: Path) -> None:
    await tell(home, tmp_path)
    file, there = tmp_path / "traces.jsonl", tmp_path / "there"
    await traces(home, "export", "-o", str(file))
    async with terminal("traces", "import", str(file), env=environment(there), folder=tmp_path) as user:
        await user.sees("8 new", "Store 8 sessions? [y/N]:")
        user.type("n\r")
        await user.sees("Nothing was stored.")
        assert await user.ended() == 1
    assert await loaded(there) == {}


async def test_what_is_exported_can_be_chosen(home: Path, tmp_path: Path) -> None:
    tale = await tell(home, tmp_path)
    async with Hone(home=home, model=Scripted(rounds("Yes.")), folder=tmp_path) as agent:
        other = await agent.session()
        await other.send("something else")
    only = parsed((await traces(home, "export", "--session", other.id)).out)
    assert [leaf["hash"] for leaf in of("leaf", only)] == [other.transcript.head]
    assert [each["usage"][0]["output"] for leaf in of("leaf", only) for each in leaf["sessions"]] == [1]
    plain = parsed((await traces(home, "export", "--no-reviews")).out)
    origins = [each["origin"] for leaf in of("leaf", plain) for each in leaf["sessions"]]
    assert sorted(origins) == ["compact", "user", "user", "user"]
    assert "What is to be learned?" not in json.dumps(plain)
    assert len(parsed((await traces(home, "export", "--since", "1h")).out)) > len(plain)
    assert len(parsed((await traces(home, "export", "--since", "2999-01-01")).out)) == 1
    assert (await traces(home, "export", "--since", "soon")).code == 2
    assert (await traces(home, "export", "--session", "nobody")).code == 1
    assert tale.session.id != other.id


async def test_the_tree_shows_who_came_from_whom(home: Path, tmp_path: Path) -> None:
    assert (await traces(home, "tree")).out == "There are no conversations yet. Start one: hone\n"
    tale = await tell(home, tmp_path)
    drawn = (await traces(home, "tree", tale.session.id[:8])).out
    first, *below = drawn.splitlines()
    assert first.startswith(f"{tale.session.id} user: ")
    assert first.endswith("question 0: how many rows?")
    kinds = [line.split()[2] for line in below if line[0] in "├└"]
    assert sorted(kinds) == ["branch:", "compact:", *["review:"] * 5]
    assert [line[0] for line in below if line[0] in "├└"] == ["├"] * 6 + ["└"]
    assert "messages (20 shared)" in drawn
    assert (await traces(home, "tree")).out == drawn


async def test_the_reader_in_the_documents_puts_every_conversation_together(
    home: Path, tmp_path: Path
) -> None:
    tale = await tell(home, tmp_path)
    await traces(home, "export", "--raw", "-o", str(tmp_path / "traces.jsonl"))
    (reader,) = blocks(ROOT / "docs" / "traces.md", "python")
    names: dict[str, Any] = {"path": tmp_path / "traces.jsonl"}
    exec(reader, names)
    lines = {line.head: [message.role for message in line] for line in tale.lines}
    read = {hash: [message["role"] for message in line] for hash, line in names["conversations"].items()}
    assert read == {hash: lines[hash] for hash in tale.leaves()}
