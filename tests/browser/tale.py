"""A fortnight with Hone, played: what is said, what is learned from it, and what a page can show of it."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from hone import Hone
from hone.core.clock import ManualClock
from hone.core.ledger import Actor, Author, Evidence
from hone.core.messages import Message, Role, assistant
from hone.core.skill import SkillOrigin
from hone.core.trust import Trust
from hone.features.curator.part import CuratorPart
from hone.knowledge.skills.document import write_document
from hone.knowledge.skills.folder import Create
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import call, rounds, rules
from hone.runtime.session import Session
from hone.settings import Settings
from hone.settings.sections import Learning, PriceSettings
from tests.faults.furnish import furnish, provider

WISH = "Keep release notes to one line per change, and name the ticket."
ASKED = f"Write the release notes for 2.4, please. {WISH}"
FOUND = "Releases are cut on the branch stable."
CHANGES = """\
HN-201 search is faster on long histories
HN-214 undo works for skills
HN-219 a crash while importing CSV files
Releases are cut on the branch stable.
"""
NOTES = """\
**Release 2.4**

- HN-201: search is faster on long histories
- HN-214: a change of a skill can be undone
- HN-219: importing CSV files no longer crashes

Say the word and I tag it with `git tag v2.4`.
"""
SKILL = """\
---
name: weekly-report
description: Gather the week's work and write the report for the team on Fridays.
---

1. Read the log of the week; leave merges out.
2. Group by theme, the largest first.
3. Three lines a theme at most; numbers before adjectives.

Pitfalls: the figures of the last day come in late; ask before sending.
"""
STANDUPS = {
    "team-standup": "Collect yesterday's commits and tickets for the morning stand-up.",
    "standup-notes": "Write the notes of the stand-up from commits and tickets.",
}
"""Two skills that overlap, and what each is for."""
STEP = "3. Three lines a theme at most; numbers before adjectives."
BETTER = "3. Two lines a theme at most, with the figure in front."
PRICE = PriceSettings(input=3.0, output=15.0, cached=0.3)
SETTINGS = Settings(learning=Learning(turns=1, iterations=0), prices={"stage/scripted": PRICE})
_TALKS = (
    (12, "How do I write the weekly report for the team?", "By theme, the largest first, three lines each."),
    (11, "Which port does the staging server use?", "It listens on 8443."),
    (10, "Collect the stand-up from commits and tickets.", "Here it is, one line for each person."),
    (9, "Plan the move of the wiki to the new host.", "In three steps: freeze, copy, switch the name."),
    (8, "I work from Lisbon until March.", "Noted: meetings before four in the afternoon, then."),
    (5, "Why is the build slow on Mondays?", "Its cache is emptied on Sundays; the first build fills it."),
    (4, "The weekly report was too long. Two lines a theme.", "Shorter from now on."),
    (2, "Compare the two import formats for me.", "The second one keeps the time zone; I would take that."),
    (1, "Draft an answer to the question about refunds.", "Done; it is four sentences long."),
)


def standup(name: str) -> str:
    return write_document(name, STANDUPS[name], "1. Read the commits.\n2. Write one line for each person.")


def _lesson(messages: Sequence[Message]) -> Message:
    """By what the owner said last before the question."""
    asked = [at for at, each in enumerate(messages) if each.role is Role.USER]
    if messages[asked[-1] + 1 :]:
        return assistant("That is all.")
    words = messages[asked[-2]].text
    if words.startswith(ASKED):
        said = {"evidence": [WISH], "reason": "You said so."}
        read = {"evidence": ["#3"], "reason": "It stood in a file."}
        return assistant(
            call("memory", action="add", target="user", text=WISH, **said),
            call("memory", action="add", target="memory", text=FOUND, **read),
        )
    if "Lisbon" in words:
        return assistant(call("memory", action="add", target="user", text=words, evidence=[words]))
    if "8443" in messages[asked[-2] + 1].text:
        text = "The staging server listens on port 8443."
        return assistant(call("memory", action="add", target="memory", text=text, evidence=["#2"]))
    if words.startswith("How do I write the weekly"):
        shown = {"evidence": ["#1"], "reason": "A way of working emerged."}
        return assistant(call("skill_manage", action="create", name="weekly-report", text=SKILL, **shown))
    if words.startswith("The weekly report was too long"):
        edit = {"find": STEP, "text": BETTER, "reason": "Corrected by the user."}
        return assistant(call("skill_manage", action="patch", name="weekly-report", evidence=["#1"], **edit))
    return assistant("Nothing to keep.")


_told = rules(
    ("look back over", _lesson),
    (
        "release notes for",
        rounds(assistant("I read what changed.", call("read_file", path="changes.txt")), NOTES),
    ),
    *((talk[:20], rounds(reply)) for _, talk, reply in _TALKS),
    otherwise=rounds("Gladly."),
)


def script(messages: Sequence[Message]) -> Message:
    """What the model does: works with a tool, and learns when it looks back."""
    said = _told(messages)
    return said if isinstance(said, Message) else said.message


async def write_standups(hone: Hone, session: Session) -> None:
    """As two reviews did that knew nothing of each other."""
    node = session.transcript.nodes[0]
    said = Evidence(session.id, 1, Trust.OWNER, node.digest)
    for name in STANDUPS:
        made = Create(standup(name), SkillOrigin.AGENT)
        await hone.keeper.edit_skill(name, made, Author(Actor.REVIEW, session.id, evidence=(said,)))


async def lived(home: Path, folder: Path, now: datetime) -> None:
    """The days before today, reviews included."""
    (folder / "changes.txt").write_text(CHANGES)
    async with FakeProvider(script) as stage:
        for ago, words, _ in _TALKS:
            clock = ManualClock(now - timedelta(days=ago, hours=1))
            async with furnish(
                home, folder, provider("openai", stage.url), clock=clock, settings=SETTINGS
            ) as hone:
                hone.part(CuratorPart).curator.reports.pause()  # its plan is for the owner to ask for
                session = await hone.session()
                turn = await session.send(words)
                assert turn.text, turn.error
                await hone.background.drain()
                if "stand-up" in words:
                    await write_standups(hone, session)
