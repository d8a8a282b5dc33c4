"""K2: a newcomer asks why, in the shell and in the chat, verifies it, and takes the lesson back."""

import json
from collections.abc import Sequence
from pathlib import Path

from hone.cli.slash import ChatState, obey
from hone.core.messages import Message, assistant
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import call
from tests.cli.driving import Ended, environment, hone
from tests.features.test_attribution import opened, taught

ENTRY, OTHER = "The staging server is called heron.", "Invoices are due within 30 days."


class Deployer:
    """Deploys where its prompt says, after a call that it gets wrong."""

    def __init__(self) -> None:
        self.provider = FakeProvider(self)

    def __call__(self, messages: Sequence[Message]) -> Message:
        if "Which of these" in messages[-1].text:
            return assistant("Only 1.")
        if not any(each.calls for each in messages):
            return assistant(call("write_file", content="no path"))
        known = b"heron" in self.provider.requests[-1].body
        return assistant(f"Deploy it to {'heron' if known else 'the staging server'}.")


async def test_a_newcomer_asks_why_verifies_it_and_takes_the_lesson_back(home: Path, tmp_path: Path) -> None:
    folder, agent = tmp_path / "work", Deployer()
    folder.mkdir()
    async with agent.provider as stage:

        async def run(*arguments: str) -> Ended:
            return await hone(*arguments, env=environment(home, stage), folder=folder)

        assert "There is no conversation yet." in (await run("why")).err
        for text in (ENTRY, OTHER):
            await run("memory", "add", text)
        await run("run", "-q", "Where do I deploy for a first look?")
        why = await run("why")
        assert (why.code, why.err) == (0, "")
        assert ENTRY in why.out
        assert OTHER not in why.out
        assert "hone undo 1" in why.out
        assert OTHER in (await run("why", "--all")).out
        asked = len(stage.requests)
        cited = await run("why", "--ask")
        assert "by measure and says the model" in cited.out
        assert len(stage.requests) == asked + 1
        verified = json.loads((await run("why", "--verify", "--json")).out)
        [ablation] = verified["ablations"]
        assert (ablation["verdict"], ablation["text"], len(ablation["pairs"])) == ("needed", ENTRY, 6)
        assert ablation["interval"][0] > 0
        assert verified["items"][0]["by"] == ["measure", "ablation"]
        assert sorted(path.name for path in folder.iterdir()) == []
        undone = await run("undo", "1")
        assert undone.code == 0, undone.err
        assert "no longer in the journal" in (await run("why")).out
        wrong = await run("why", "--verify", "--item", "7")
        assert (wrong.code, "7 is not in the list, which has 1 item." in wrong.err) == (1, True)


async def test_the_chat_says_why_without_a_word_to_the_model(home: Path, tmp_path: Path) -> None:
    async with opened(home, tmp_path) as hone_:
        state = ChatState(hone_, await hone_.session())
        assert await obey(state, "why", "") == "There is no answer yet."
        await taught(hone_)
        state.session = await hone_.session()
        await state.session.send("Where do I deploy for a first look?")
        before = len(state.session.transcript)
        said = await obey(state, "why", "")
        assert isinstance(said, str)
        assert (ENTRY in said, OTHER in said, "hone undo 1" in said) == (True, False, True)
        everything = await obey(state, "why", "all")
        assert isinstance(everything, str)
        assert OTHER in everything
        assert (
            await obey(state, "why", "soon")
            == "Which message? Try /why 14, or /why alone for the last answer."
        )
        assert len(state.session.transcript) == before
