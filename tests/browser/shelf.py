"""Puts something into each further view: a template, an experiment, skills to merge, rules."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from hone.core.ids import SessionId
from hone.core.messages import Message, Role, assistant
from hone.core.skill import SkillOrigin
from hone.core.trust import Trust
from hone.core.value import replace
from hone.features.experiments.store import Studies
from hone.features.experiments.values import Arm, Check, Lesson, LessonKind, Run, Study, Task
from hone.features.templates.part import TemplatesPart
from hone.features.templates.values import Example, Template, WorkKind
from hone.files.documents import FileDocuments
from hone.knowledge.skills.folder import Create
from tests.browser import tale
from tests.curating import LEARNED, merge
from tests.web.rig import Running

TEMPLATE, EXPERIMENT, ALLOWED = "release-notes", "weekly-report", "terminal: make test"
MERGED = "1. Read yesterday's commits and tickets.\n2. One line for each person.\n3. Blockers come first."
PLAN = merge("team-standup", ["standup-notes"], MERGED, description=tale.STANDUPS["team-standup"])
PAIRS = 20


def script(messages: Sequence[Message]) -> Message:
    """What the model does, with a plan where the curator asks."""
    asked = "".join(each.text for each in messages if each.role is Role.USER)
    return assistant(json.dumps(PLAN)) if "standup-notes" in asked else tale.script(messages)


async def stock(visit: Running, home: Path, session: str) -> None:
    hone = visit.state.hone
    await visit.post("/api/curator/pause", paused=True)  # or the first round, which is due, begins by itself
    await hone.part(TemplatesPart).store.add(_template(session))
    _study(home, session)
    known = {each.name for each in await hone.library.listed()}
    for name in {*tale.STANDUPS} - known:
        await hone.keeper.edit_skill(name, Create(tale.standup(name), SkillOrigin.AGENT), LEARNED)
    await visit.post("/api/permissions", rule=ALLOWED)
    await visit.post("/api/permissions", rule="write_file: secrets/**", kind="deny", everywhere=True)


def _template(session: str) -> Template:
    examples = (
        Example(
            "read_file", '{"path": "changes.txt"}', tale.CHANGES, len(tale.CHANGES), Trust.LOCAL, Trust.LOCAL
        ),
        Example("terminal", '{"command": "git log --oneline v2.3.."}', "", 812, Trust.LOCAL, Trust.FOREIGN),
    )
    described = "Read what changed since the last release and write one line per change."
    at = datetime.now(UTC)
    return Template(TEMPLATE, WorkKind.FILE, SessionId(session), at, described, ("git",), examples)


def _study(home: Path, session: str) -> None:
    """A skill that helps, and one of which that cannot be said."""
    studies, now = Studies(FileDocuments(home), home), datetime.now(UTC)
    request = "Write the weekly report from the log in this folder."
    check = Check(text="two lines a theme")
    studies.add(Task(EXPERIMENT, SessionId(session), now, "/work", request, check))
    for lesson, every in (("weekly-report", 4), ("short-answers", 1)):
        about = Lesson(LessonKind.SKILL, lesson, "ab12")
        study = studies.study(Study(EXPERIMENT, about, "stage/scripted", now))
        for pair in range(1, PAIRS + 1):
            having = Run(pair, Arm.WITH, pair % 10 > 0, 3, 0, 0, 1, 0.5 + pair / 50, 2, 900 + pair, 1.25)
            lacking = replace(having, arm=Arm.WITHOUT, success=pair % every == 0, turns=5, tokens=1100 - pair)
            for run in (having, lacking):
                study = studies.append(study, run)
