"""The terminal: a directory that lasts, an end that is told, questions before what is dangerous."""

import asyncio
import os
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from hone.core.clock import ManualClock
from hone.core.permissions import CHOICES, Answer
from hone.core.permit import USER, Effect, Permit
from hone.core.trust import Trust
from hone.sandbox.choice import NONE, Sandbox, SandboxChoice
from hone.sandbox.spec import ALL, Claim
from hone.tools.shell import LONGEST, MOST
from tests.conftest import requires
from tests.tools.shells import Given, Owner, Session, play, pretended, session
from tests.tools.test_process import STUBBORN, marked


def stubborn(folder: Path, mark: str) -> str:
    """A command that says through a pipe when all its children are there."""
    os.mkfifo(folder / mark)
    return STUBBORN.format(mark=mark).replace("echo ready", f"echo ready > {folder}/{mark}")


async def ready(folder: Path, mark: str) -> None:
    assert await asyncio.to_thread((folder / mark).read_text) == "ready\n"
    (folder / mark).unlink()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path.resolve() / "work"
    path.mkdir()
    return path


def test_a_directory_lasts_from_one_command_to_the_next(folder: Path) -> None:
    odd = "a b'\"$(x)\né"

    async def script(shell: Session) -> None:
        first = await shell.terminal("mkdir -p one/two; cd one")
        assert first.text.endswith(f"; now in {folder}/one]")
        assert (await shell.terminal("cd two; exit 3")).failed
        assert (await shell.terminal("pwd")).text.startswith(f"{folder}/one/two\n[exit code 0; ")
        (folder / odd).mkdir()
        await shell.terminal("cd ../..; cd a*")
        assert (await shell.terminal("pwd")).text.startswith(f"{folder}/{odd}\n")
        await shell.terminal(f"rmdir ../a*; echo {folder} >&3; echo nonsense >&3")
        gone = await shell.terminal("pwd")
        assert gone.text.startswith(f"(back in {folder}: ")
        assert f"\n{folder}\n" in gone.text
        await shell.terminal("cd /; if then")
        assert (await shell.terminal("pwd")).text.startswith(f"{folder}\n")

    play(session(folder), script)


def test_how_a_command_ended_is_told(folder: Path) -> None:
    async def script(shell: Session) -> None:
        fine = await shell.terminal("printf out; printf err >&2")
        assert fine.text.startswith("outerr\n[exit code 0; ")
        assert not fine.failed
        wrong = await shell.terminal("echo said; exit 9")
        assert wrong.failed
        assert wrong.text.startswith("said\n[exit code 9; ")
        assert "in a sandbox: can write only to the working folder" in wrong.text
        assert "exit code 139 (SIGSEGV)" in (await shell.terminal("kill -SEGV $$")).text
        assert (await shell.terminal("")).text.startswith("[exit code 0; ")

    play(session(folder), script)


def test_a_command_that_takes_too_long_is_stopped_with_all_it_started(folder: Path) -> None:
    clock, mark = ManualClock(), os.urandom(8).hex()

    async def script(shell: Session) -> None:
        task = asyncio.create_task(shell.terminal(stubborn(folder, mark), timeout=7))
        await ready(folder, mark)
        clock.advance(8)
        outcome = await task
        assert outcome.failed
        assert "[stopped after 7 s, with everything it started; 8.0 s; " in outcome.text
        assert marked(mark) == []
        assert not (await shell.terminal("true")).failed

    play(session(folder, clock=clock), script)


def test_too_much_output_lies_in_a_file_that_the_next_command_can_read(folder: Path) -> None:
    async def script(shell: Session) -> None:
        flood = await shell.terminal("echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo last")
        assert flood.text.startswith("first\n")
        path = flood.text.partition("whole output in ")[2].partition(" …")[0]
        size = await shell.terminal(f"wc -c < {path}; tail -c 5 {path}; echo $TMPDIR $HOME")
        assert size.text.startswith("3000011\nlast\n")
        scratch = shell.shell.workspace.scratch()
        await shell.terminal("mkdir -p $TMPDIR/deep/er; ln -s / $TMPDIR/root; chmod 0 $TMPDIR/deep")
        await shell.shell.close()
        assert not scratch.exists()
        assert folder.exists()

    play(session(folder), script)


def test_processes_in_the_background_are_listed_read_and_stopped_and_end_with_the_shell(folder: Path) -> None:
    mark = os.urandom(8).hex()

    async def script(shell: Session) -> None:
        assert (await shell.call("process")).text == "There are no background processes."
        begun = await shell.terminal("echo hello; cat fifo; exit 4", background=True)
        assert begun.text == "Started in the background as p1."
        await shell.terminal(stubborn(folder, mark), background=True)
        await ready(folder, mark)
        assert len(marked(mark)) >= 6
        rows = (await shell.call("process")).text.splitlines()
        assert rows[0].startswith("p1: echo hello; cat fifo; exit 4 (")
        job = shell.shell.jobs["p1"]
        await job.running.wait()
        ended = await shell.call("process", id="p1", action="output")
        assert ended.text.startswith("hello\n")
        assert ended.text.endswith("[ended: exit code 4]")
        stopped = await shell.call("process", id="p2", action="stop")
        assert stopped.text.endswith("[ended: exit code 137 (SIGKILL)]")
        assert marked(mark) == []
        unknown = await shell.call("process", id="p9", action="output")
        assert unknown.failed
        assert "Processes: p1, p2." in unknown.text
        await shell.terminal(stubborn(folder, mark), background=True)
        await ready(folder, mark)
        assert len(marked(mark)) >= 6
        await shell.shell.close()
        assert marked(mark) == []

    play(session(folder), script)


def test_there_are_not_too_many_in_the_background(folder: Path) -> None:
    async def script(shell: Session) -> None:
        for _ in range(3):
            await shell.terminal("true", background=True)
        for number in range(1, 4):
            await shell.shell.jobs[f"p{number}"].running.wait()
        for _ in range(MOST):
            assert not (await shell.terminal("sleep 1000", background=True)).failed
        refused = await shell.terminal("sleep 1000", background=True)
        assert refused.failed
        assert f"{MOST} processes are already running in the background" in refused.text
        assert len(shell.shell.jobs) == MOST

    play(session(folder), script)


@pytest.mark.parametrize("answer", [*map(Answer, CHOICES)], ids=str)
def test_a_dangerous_command_asks_and_what_is_shown_is_what_runs(folder: Path, answer: Answer) -> None:
    owner = Owner(answer)
    command = "echo 'é \\ $x'; printf '%s' \"$1\"; git reset --hard; chmod u+s x"

    async def script(shell: Session) -> None:
        outcome = await shell.terminal(command)
        (question,) = owner.asked
        assert question.detail == command
        assert question.text == (
            f"Run this command in {folder}? It throws away changes that are not committed; "
            "it makes a file run with its owner's rights."
        )
        assert question.pattern == f"terminal: {command}"
        if answer == Answer.NO:
            assert outcome.text == "Not run. The user said no."
            assert outcome.trust is Trust.AGENT
        else:
            # The shell's own first argument is the command, byte for byte.
            assert outcome.text.startswith(f"é \\ $x\n{command}")
        assert outcome.failed

    play(session(folder, owner=owner), script)


def test_with_nobody_to_ask_it_is_denied(folder: Path) -> None:
    owner = Owner(Answer.ALWAYS)
    alone = Permit(USER.effects, attended=False)

    async def script(shell: Session) -> None:
        for arguments in ({"command": "rm -rf ~"}, {"command": "true", "network": True}):
            outcome = await shell.call("terminal", **arguments)
            assert outcome.failed
            assert "needs the user's consent, and nobody is there to ask" in outcome.text
        assert (await shell.terminal("echo ran")).text.startswith("ran\n")
        assert owner.asked == []

    play(session(folder, owner=owner, permit=alone), script)


def test_without_a_sandbox_every_command_asks_and_says_what_it_could_reach(folder: Path) -> None:
    owner = Owner(Answer.ONCE)

    async def script(shell: Session) -> None:
        first = await shell.terminal("echo ran")
        assert first.failed
        assert "call again with network=true" in first.text
        assert owner.asked == []
        second = await shell.terminal("echo ran", network=True)
        assert second.text.startswith("ran\n[exit code 0; ")
        assert second.trust is Trust.FOREIGN
        (question,) = owner.asked
        assert (
            "The sandbox in force (none) does not keep it from files outside the working folder, "
            in question.text
        )
        assert question.detail == "echo ran"
        code = await shell.call("execute_code", code="print('ran')", network=True)
        assert code.text.startswith("ran\n")
        assert owner.asked[1].detail == "print('ran')"
        owner.answer = Answer.NO
        assert (await shell.terminal("echo ran", network=True)).failed
        assert (await shell.call("execute_code", code="print('ran')", network=True)).failed

    play(session(folder, Given(), owner), script)


def test_a_sandbox_that_holds_in_part_asks_as_well(folder: Path) -> None:
    owner = Owner(Answer.ONCE)
    held = ALL - {Claim.PROCESSES}

    async def script(shell: Session) -> None:
        outcome = await shell.terminal("echo ran")
        assert outcome.text.startswith("ran\n")
        assert outcome.trust is Trust.LOCAL
        (question,) = owner.asked
        assert question.text.endswith("does not keep it from other processes.")

    play(session(folder, Given(NONE, held), owner), script)


@pytest.mark.parametrize("rule", ["ask", "allow", "never"])
def test_the_network_is_asked_for_unless_it_is_decided(folder: Path, rule: str) -> None:
    owner = Owner(Answer.SESSION)

    async def script(shell: Session) -> None:
        outcome = await shell.terminal("echo ran", network=True)
        code = await shell.call("execute_code", code="'ran'", network=True)
        assert len(owner.asked) == (2 if rule == "ask" else 0)
        for each in (outcome, code):
            assert each.failed is (rule == "never")
            assert each.trust is (Trust.AGENT if rule == "never" else Trust.FOREIGN)
        without = await shell.terminal("echo ran")
        assert not without.failed
        assert without.trust is Trust.LOCAL

    play(session(folder, owner=owner, network=rule), script)  # type: ignore[arg-type]


def test_a_permit_without_the_network_is_no_matter_for_the_owner(folder: Path) -> None:
    owner = Owner(Answer.ALWAYS)
    permit = Permit(USER.effects - {Effect.NETWORK}, attended=True)

    async def script(shell: Session) -> None:
        outcome = await shell.terminal("echo ran", network=True)
        assert outcome.failed
        assert "The network is not permitted here" in outcome.text
        assert owner.asked == []

    play(session(folder, owner=owner, permit=permit, network="allow"), script)


def test_what_cannot_be_a_command_is_refused_in_a_sentence(folder: Path) -> None:
    async def script(shell: Session) -> None:
        for command in ("echo \0", "x" * (LONGEST + 1)):
            outcome = await shell.terminal(command)
            assert outcome.failed
            assert "at most 100,000 bytes and no NUL byte" in outcome.text
        assert (await shell.terminal(f"true {'x' * 90_000}")).text.startswith("[exit code 0; ")
        for wrong in ({"timeout": 0}, {"timeout": 10**9}, {"timeout": "1; touch x"}, {"background": "$(id)"}):
            assert (await shell.call("terminal", command="true", **wrong)).text.startswith(
                "terminal was not run: "
            )

    play(session(folder), script)


def test_the_terminals_effects_are_declared_and_its_schemas_are_small(folder: Path) -> None:
    terminal, process, code = session(folder).shell.tools
    assert terminal.spec.effects == code.spec.effects == {Effect.READ, Effect.WRITE, Effect.EXECUTE}
    assert terminal.spec.network_flag == code.spec.network_flag == "network"
    assert process.spec.effects == {Effect.EXECUTE}
    assert sum(len(tool.spec.schema) for tool in (terminal, process, code)) < 1_300


def test_sensitive_files_that_commands_make_are_taken_back_and_told_once(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    said = "taken back: .envrc (your shell runs it), kept in "

    async def script(shell: Session) -> None:
        first = await shell.terminal("echo evil > .envrc; echo fine > notes")
        assert said in first.text
        assert first.text.rstrip("]").endswith("commands cannot change such files, use write_file")
        code = await shell.call("execute_code", code="open('.envrc', 'w').write('evil')")
        assert said in code.text
        for name in ("go", "there"):
            os.mkfifo(folder / name)
        evil = "echo evil > .envrc; echo ready > there; cat go; echo evil > .exrc"
        await shell.terminal(evil, background=True)
        await asyncio.to_thread((folder / "there").read_text)
        listed = await shell.call("process")
        assert said in listed.text
        assert listed.trust is Trust.AGENT
        # A file tool writes with the owner's consent meanwhile, and says so.
        (folder / ".vimrc").write_text("mine")
        shell.shell.workspace.sandbox.vouch(folder / ".vimrc")
        # Something still runs, so anything else that is there now may be its work.
        assert "taken back" not in (await shell.terminal("true")).text
        await asyncio.to_thread((folder / "go").write_text, "")
        await shell.shell.jobs["p1"].running.wait()
        output = await shell.call("process", id="p1", action="output")
        assert ".exrc (your editor runs it)" in output.text
        assert "taken back" not in (await shell.call("process")).text
        assert sorted(os.listdir(folder)) == [".vimrc", "go", "notes", "there"]

    play(session(folder), script)
    assert len([*tmp_path.rglob(".envrc")]) == 3


def test_an_interrupted_command_leaves_no_sensitive_file_and_the_next_result_says_so(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    async def script(shell: Session) -> None:
        os.mkfifo(folder / "there")
        task = asyncio.create_task(shell.terminal("echo evil > .envrc; echo ready > there; sleep 1000"))
        await asyncio.to_thread((folder / "there").read_text)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert not (folder / ".envrc").exists()
        assert "taken back: .envrc" in (await shell.terminal("true")).text
        await shell.terminal("echo evil > .envrc; echo ready > there; sleep 1000", background=True)
        await asyncio.to_thread((folder / "there").read_text)
        await shell.shell.close()
        assert not (folder / ".envrc").exists()

    play(session(folder), script)


REFUSALS = [
    "cat /etc/shadow",
    "ls /root/.ssh",
    "touch /usr/bin/hone-probe",
    "echo x > /etc/hone-probe",
    "mkdir /hone-probe",
    "mount -t tmpfs none /mnt",
    "curl -sS --max-time 5 http://127.0.0.1:9/",
    "getent hosts example.com",
    "kill -9 99999",
    "chown root:root .",
    "mknod device b 8 0",
    "unshare -r id",
]


def test_a_refusal_of_the_sandbox_is_a_clear_result(folder: Path, home: Path) -> None:
    requires("bwrap")
    owner = Owner(Answer.ONCE)
    sandbox = Sandbox(hidden=[home])

    async def script(shell: Session) -> None:
        choice: SandboxChoice = await shell.shell.workspace.choice()
        if choice.held != ALL:
            pytest.skip("no sandbox holds here")
        for command in REFUSALS:
            outcome = await shell.terminal(command)
            assert outcome.failed, command
            assert "in a sandbox: can write only to the working folder and $TMPDIR" in outcome.text
            assert "no network]" in outcome.text
        assert (await shell.terminal("echo x > file; cat file; id -u; echo $PPID")).text.startswith("x\n")
        assert (await shell.call("execute_code", code="open('file').read()")).text.startswith("'x\\n'\n")

    play(session(folder, sandbox, owner), script)


def test_an_interrupt_leaves_nothing_and_the_next_command_works(folder: Path) -> None:
    async def script(shell: Session) -> None:
        await shell.terminal("mkdir deep; cd deep")
        for settled in (False, True):
            mark = os.urandom(8).hex()
            task = asyncio.create_task(shell.terminal(stubborn(folder, mark)))
            await asyncio.sleep(0)
            if settled:
                await ready(folder, mark)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            assert task.cancelled()
            assert marked(mark) == []
        assert (await shell.terminal("pwd")).text.startswith(f"{folder}/deep\n")

    play(session(folder, pretended()), script)
