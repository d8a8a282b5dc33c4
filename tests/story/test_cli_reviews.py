"""Reviews as their owner meets them: listed, shown, begun, repeated, called off; in chats, by a worker."""

import asyncio
import json
import re
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hone import Hone
from hone.core.jobs import JobId
from hone.core.messages import Message, assistant
from hone.learning.reports import data, reports
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import Script, call, rounds, rules
from hone.settings import Settings
from tests.cli.driving import CTRL_C, CTRL_D, HONE, PATIENCE, Ended, environment, hone, terminal

RULE = "Always answer in one sentence."
LEARNED = f'✎ learned about you: "{RULE}"'
EAGER = "[learning]\nturns = 1\niterations = 0\n"
GATE = """\
import asyncio, os
from hone import Part, tool

@tool(effects=set())
async def wait_at_the_gate() -> str:
    '''Wait at the gate.'''
    while not os.path.exists(os.environ["GATE"]):
        await asyncio.sleep(0.02)
    return "It is open."

class Extra(Part):
    def tools(self, folder, source=None):
        return [wait_at_the_gate]

def register(hone):
    return Extra()
"""


def learner(*before: Message) -> Script:
    """A model that says yes, and when it looks back keeps the rule, whatever it does `before` that."""
    keep = assistant(call("memory", action="add", target="user", text=RULE, evidence=[RULE]))
    return rules(
        ("look back over this conversation", rounds(*before, keep, "Saved one.")), otherwise=rounds("Yes.")
    )


async def listed() -> list[dict[str, Any]]:
    """What `hone reviews --json` prints, without a process for it."""
    async with Hone(settings=Settings()) as opened:
        return [data(each) for each in await reports(opened, await opened.jobs.jobs())]


async def states() -> list[str]:
    return [each["state"] for each in await listed()]


def profile(home: Path) -> str:
    path = home / "USER.md"
    return path.read_text() if path.exists() else ""


async def test_where_nothing_was_said_there_is_nothing_to_look_back_over(home: Path) -> None:
    async with FakeProvider(learner()) as stage:
        env = environment(home, stage)
        assert "There has been no review yet." in (await hone("reviews", env=env)).out
        for arguments, reason in (
            (["review"], "There is no conversation to review yet."),
            (["reviews", "show", "7"], "There is no review 7."),
            (["reviews", "cancel", "7"], "There is no review 7."),
        ):
            ended = await hone(*arguments, env=env)
            assert (ended.code, ended.out) == (1, "")
            assert reason in ended.err
        done = await hone("worker", "--once", env=env)
        assert (done.code, done.out, done.err) == (0, "", "")
        assert stage.bodies == []


async def test_a_run_queues_its_review_says_nothing_and_a_worker_does_it(home: Path) -> None:
    (home / "hone.toml").write_text(EAGER + '[prices."openai/scripted"]\ninput = 1.0\noutput = 4.0\n')
    async with FakeProvider(learner()) as stage:
        env = environment(home, stage)
        ran = await hone("run", RULE, env=env)
        assert (ran.code, ran.out) == (0, "Yes.\n")
        assert "review" not in ran.err
        assert len(stage.bodies) == 1
        [job] = json.loads((await hone("reviews", "--json", env=env)).out)
        assert (job["state"], job["cost"], job["changes"]) == ("queued", None, [])
        done = await hone("worker", "--once", env=env)
        assert (done.code, done.err) == (0, "")
        assert done.out == f"review 1 of {job['session']}: {LEARNED} · hone undo 1\n"
        assert profile(home) == f"- {RULE}\n"
        table = (await hone("reviews", env=env)).out
        assert re.search(r"1 +\S+ \S+ +\w{10} +memory +done +[\d,]+ +8\d% +\$0\.\d{4} +1 +1 turn", table)
        shown = (await hone("reviews", "show", "1", env=env)).out
        assert re.search(r"^3 question\n  Now look back over", shown, re.MULTILINE)
        assert "  → memory add" in shown
        assert re.search(r'^you: "Always answer.* by review$', shown, re.MULTILINE)
        assert "1 call · " in shown.splitlines()[-1], "what succeeds needs no second request"
        assert len(stage.bodies) == 2


async def test_a_review_by_hand_is_done_at_once_and_an_unknown_cost_is_not_zero(home: Path) -> None:
    (home / "hone.toml").write_text("[learning]\nturns = 0\n")
    async with FakeProvider(learner()) as stage:
        env = environment(home, stage)
        await hone("run", RULE, env=env)
        async with Hone(settings=Settings()) as opened:
            [said] = await opened.sessions.list()
        done = await hone("review", "--about", "memory", env=env)
        assert (done.code, done.out) == (0, f"{LEARNED} · hone undo 1\n")
        assert said.header.id in done.err
        done = await hone("review", said.header.id[:6], env=env)
        assert (done.code, done.out) == (0, "nothing to save\n")
        second, first = await listed()
        assert (first["session"], first["topics"], first["why"]) == (said.header.id, ["memory"], "by hand")
        assert (second["topics"], second["cost"], second["calls"]) == (["memory", "skills"], None, 1)
        assert (await hone("reviews", "-n", "1", env=env)).out.count(" unknown ") == 1
        refused = await hone("review", second["review"], env=env)
        assert (refused.code, refused.out) == (1, "")
        assert "no conversation of yours" in refused.err


async def test_what_waits_for_the_owner_is_counted_and_told(home: Path) -> None:
    (home / "hone.toml").write_text(EAGER + 'review = "ask"\n')
    async with FakeProvider(learner()) as stage:
        env = environment(home, stage)
        await hone("run", RULE, env=env)
        done = await hone("worker", "--once", env=env)
        assert done.out.endswith(": ✎ 1 lesson waits (hone pending)\n")
        assert " 1, 1 waits " in (await hone("reviews", env=env)).out
        await hone("reject", "1", env=env)
        assert (await listed())[0]["waiting"] == 0
        async with terminal(env=env) as user:
            await user.enter(RULE)
            await user.sees("✎ 1 lesson waits (/pending)")
            await user.enter("/usage")
            await user.sees("1 call · ")
            assert await user.leave() == 0
        assert user.text.count("wait") == 1


async def test_one_that_went_wrong_says_why_and_can_be_retried_or_called_off(home: Path) -> None:
    (home / "hone.toml").write_text(EAGER)
    async with FakeProvider(learner(), fault=lambda number: "401" if number == 1 else None) as stage:
        env = environment(home, stage)
        await hone("run", RULE, env=env)
        done = await hone("worker", "--once", env=env)
        assert done.code == 1
        assert "review 1 of " in done.out
        assert ": waits: openai refused the key (401)" in done.out
        async with Hone(settings=Settings()) as opened:
            await opened.jobs.fail(JobId(1), "the key was refused", datetime.now(UTC), again=False)
        assert re.search(r" failed .*\n +the key was refused\n", (await hone("reviews", env=env)).out)
        assert (await hone("reviews", "retry", "1", env=env)).code == 0
        assert await states() == ["queued"]
        assert (await hone("reviews", "cancel", "1", env=env)).code == 0
        assert (await hone("worker", "--once", env=env)).out == ""
        assert await states() == ["cancelled"]
        assert len(stage.bodies) == 2
        await hone("reviews", "retry", "1", env=env)
        assert (await hone("worker", "--once", env=env)).code == 0
        assert profile(home) == f"- {RULE}\n"
        again = await hone("reviews", "retry", "1", env=env)
        assert (again.code, again.out) == (1, "")


async def test_with_the_days_budget_spent_it_says_so_and_nothing_is_sent(home: Path) -> None:
    (home / "hone.toml").write_text(EAGER + "daily = 0.0\n")
    async with FakeProvider(learner()) as stage:
        env = environment(home, stage)
        await hone("run", RULE, env=env)
        done = await hone("worker", "--once", env=env)
        assert "waits: The budget of 0.00 USD a day is spent" in done.out
        table = (await hone("reviews", env=env)).out
        assert "queued" in table
        assert "The budget of 0.00 USD a day is spent; reviews continue tomorrow." in table
        async with terminal(env=env) as user:
            await user.enter("/reviews")
            await user.sees("The budget of 0.00 USD a day is spent")
            assert await user.leave() == 0
        assert "Still learning" not in user.text
        assert len(stage.bodies) == 1
        assert profile(home) == ""


@asynccontextmanager
async def working(*arguments: str, env: dict[str, str]) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(
        *HONE, *arguments, env=env, stdin=DEVNULL, stdout=PIPE, stderr=PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def ended(process: Process) -> Ended:
    async with asyncio.timeout(PATIENCE):
        out, err = await process.communicate()
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


def gated(home: Path, folder: Path, stage: FakeProvider) -> dict[str, str]:
    """A home whose reviews wait until there is a file `open`."""
    (folder / "gate.py").write_text(GATE)
    (home / "hone.toml").write_text('plugins = ["gate:register"]\n' + EAGER)
    return environment(home, stage, PYTHONPATH=str(folder), GATE=str(folder / "open"))


def waiting() -> tuple[Script, asyncio.Event]:
    """A learner that waits at the gate; the event is set once it has been asked to look back."""
    begun, script = asyncio.Event(), learner(assistant(call("wait_at_the_gate")))

    def heard(messages: Sequence[Message]) -> Any:
        if len(messages) > 2:
            begun.set()
        return script(messages)

    return heard, begun


async def test_a_worker_that_is_told_to_end_leaves_its_job_in_the_queue(home: Path, tmp_path: Path) -> None:
    script, begun = waiting()
    async with FakeProvider(script) as stage:
        env = gated(home, tmp_path, stage)
        await hone("run", RULE, env=env)
        async with working("worker", env=env) as worker:
            await begun.wait()
            assert await states() == ["at work"]
            busy = await hone("worker", "--once", env=env)
            assert (busy.code, "another process is reviewing" in busy.out) == (0, True)
            worker.send_signal(signal.SIGTERM)
            end = await ended(worker)
        assert (end.code, end.out) == (0, "")
        assert "1 is left in the queue" in end.err
        assert await states() == ["queued"]
        assert list((home / "locks").iterdir()) == []
    assert profile(home) == ""


async def test_ctrl_c_leaves_a_review_by_hand_in_the_queue(home: Path, tmp_path: Path) -> None:
    script, begun = waiting()
    async with FakeProvider(script) as stage:
        env = gated(home, tmp_path, stage)
        await hone("run", RULE, env=env)
        await hone("reviews", "cancel", "1", env=env)
        async with terminal("review", env=env) as user:
            await begun.wait()
            await user.sees("Reviewing conversation ", "Ctrl-C stops")
            user.type(CTRL_C)
            await user.sees("Review 2 stays in the queue. To run it: hone worker --once")
            assert await user.ended() == 130
        assert await states() == ["queued", "cancelled"]
        assert list((home / "locks").iterdir()) == []


async def test_a_worker_that_is_killed_is_not_at_work_and_the_next_one_does_what_comes(
    home: Path, tmp_path: Path
) -> None:
    script, begun = waiting()
    async with FakeProvider(script) as stage:
        env = gated(home, tmp_path, stage)
        await hone("run", RULE, env=env)
        async with working("worker", env=env) as worker:
            await begun.wait()
            worker.kill()
            await worker.wait()
            assert await states() == ["queued"]
        (tmp_path / "open").touch()
        async with working("worker", env=env) as worker:
            assert worker.stdout
            async with asyncio.timeout(PATIENCE):
                assert b"review 1 of" in await worker.stdout.readline()
                await hone("run", "Something else.", env=env)
                assert b"review 2 of" in await worker.stdout.readline()
            worker.terminate()
            assert (await ended(worker)).code == 0
        assert profile(home) == f"- {RULE}\n"
        assert list((home / "locks").iterdir()) == []


async def test_what_was_learned_is_told_above_the_prompt_and_what_is_being_typed_stays(
    home: Path, tmp_path: Path
) -> None:
    script, begun = waiting()
    async with FakeProvider(script) as stage, terminal(env=gated(home, tmp_path, stage)) as user:
        await user.enter(RULE)
        await user.sees("Yes.")
        await user.write("half a sen")
        await begun.wait()
        (tmp_path / "open").touch()
        await user.sees(f"{LEARNED} · /undo 1")
        await user.until(lambda: user.rows[user.row].startswith("> half a sen"), "the prompt below it")
        user.type("tence")
        await user.sees("> half a sentence")
        user.type(CTRL_C)
        await user.enter("/undo 1")
        await user.sees("Change 1 is undone by change 2.")
        await user.enter("/reviews")
        await user.sees(" memory ", " done ", "1 turn")
        assert await user.leave() == 0
    assert profile(home) == ""
    assert user.text.count("✎ learned") == 1
    assert "Still learning" not in user.text


async def test_a_plain_terminal_is_told_before_the_next_prompt(home: Path, tmp_path: Path) -> None:
    script, _ = waiting()
    async with FakeProvider(script) as stage:
        env = gated(home, tmp_path, stage) | {"TERM": "dumb"}
        (tmp_path / "open").touch()
        async with terminal(env=env) as user:
            await user.enter(RULE)
            await user.sees("Yes.", "1 call · ")
            for _ in range(100):
                await user.enter("/usage")
                await user.sees("1 call · ")
                await user.prompt()
                if "✎" in user.text:
                    break
            assert f"\n{LEARNED} · /undo 1\n>" in user.text
            assert await user.leave() == 0


async def test_a_chat_that_is_left_while_it_learns_tells_what_is_about_to_end(
    home: Path, tmp_path: Path
) -> None:
    script, begun = waiting()
    async with FakeProvider(script) as stage, terminal(env=gated(home, tmp_path, stage)) as user:
        await user.enter(RULE)
        await user.sees("Yes.")
        await begun.wait()
        await user.prompt()
        user.type(CTRL_D)
        await user.sees("is kept. To continue it")
        (tmp_path / "open").touch()
        await user.sees(f"{LEARNED} · hone undo 1")
        assert await user.ended() == 0
    assert profile(home) == f"- {RULE}\n"


async def test_what_is_not_done_when_a_chat_is_left_is_done_by_the_next(home: Path, tmp_path: Path) -> None:
    script, begun = waiting()
    async with FakeProvider(script) as stage:
        env = gated(home, tmp_path, stage)
        async with terminal(env=env) as user:
            await user.enter(RULE)
            await user.sees("Yes.")
            await begun.wait()
            await user.prompt()
            user.type(CTRL_D)
            await user.sees("The next chat reviews this conversation.")
            assert await user.ended() == 0
        assert "Traceback" not in user.text
        assert await states() == ["queued"]
        assert profile(home) == ""
        (tmp_path / "open").touch()
        async with terminal(env=env) as user:
            await user.sees(f"{LEARNED} · /undo 1")
            assert await user.leave() == 0
        assert [(each["state"], each["tries"]) for each in await listed()] == [("done", 2)]
        assert stage.invalid == []
    assert profile(home) == f"- {RULE}\n"


async def test_a_review_asked_for_in_a_chat_is_done_beside_it(home: Path) -> None:
    (home / "hone.toml").write_text('[learning]\nturns = 0\nshow = "verbose"\n')
    async with FakeProvider(learner()) as stage, terminal(env=environment(home, stage)) as user:
        await user.enter("/review")
        await user.sees("There is nothing to review yet.")
        await user.enter(RULE)
        await user.sees("Yes.")
        await user.enter("/review everything")
        await user.sees("There is no topic 'everything'. Use one of: memory, skills.")
        await user.enter("/review memory")
        await user.sees(f"{LEARNED} · /undo 1", f"+- {RULE}")
        assert await user.leave() == 0
