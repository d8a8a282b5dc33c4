"""C6, E4: that something does not work stays out of skills, and what the owner forbids is no such claim."""

from pathlib import Path

import pytest

from hone.core.errors import Refused
from hone.core.ledger import Author
from hone.core.skill import SkillOrigin
from hone.knowledge.cues import is_negative_claim
from hone.knowledge.journal import Add
from hone.knowledge.keeper import OWNER
from hone.knowledge.skills import bundled
from hone.knowledge.skills.claims import find_claims
from hone.knowledge.skills.folder import Create, Edit, Patch, WriteFile
from tests.conftest import Figures
from tests.knowledge.lessons import Lessons, is_active, lessons

NAME = "page-checks"
PLAN = """---
name: page-checks
description: Check a page before it is published.
---

# Page checks

1. Open the page.
2. Read its title.
"""
CLAIMS = (
    "The browser tool does not work.",
    "The tool doesn’t work.",
    "`web_fetch` is broken; do not use it.",
    "Docker is not installed here.",
    "pytest fails with exit code 5.",
    "The GPU is unavailable and should not be used.",
    "Never call the search tool: it always fails.",
    "The browser tool\ndoes not work in this\nenvironment.",
    "- Playwright cannot be installed.",
    "There is no network access.",
    "Avoid the browser tool because it is unreliable.",
    "The API is down, so don't call it.",
    "Don't try `npm test`; it can't run.",
    "Das Browser-Werkzeug funktioniert nicht.",
    "L'outil de recherche ne fonctionne pas.",
    "El navegador no funciona.",
    "O navegador não funciona.",
    "De browser werkt niet.",
)
HONEST = (
    "If the server does not start, read the log.",
    "When `pytest` fails with exit code 5, no tests were collected.",
    "The upload fails on files above 5 MB, so split them.",
    "Port 8000 is not available on this host: take 8001.",
    "Docker is not installed on the build machine. Use podman.",
    "`make build` does not work before `make setup`.",
    "The CLI does not run without a config file.",
    "Retry twice: the first call often fails with a timeout.",
    "The old flag `--fast` does not exist any more; pass `--quick`.",
    "Restart the worker until it responds.",
    "Check whether the package is missing.",
    "Files that cannot be read are listed at the end.",
    "Users who cannot open the page get a link.",
    "Say so if a source could not be found.",
    "Explain errors as “The server is unreachable”.",
    "Is the service down?",
    "Do not run the migration by hand.",
    "The user does not work on Fridays.",
    "| The server is unreachable | restart it |",
    "## It does not start",
    "It does not respond:",
    "```sh\necho it does not work\n```",
    "Wenn der Server nicht erreichbar ist und der Test nicht startet, prüfe das VPN.",
)
ORDERS = (
    "Do not run migrations without asking.",
    "Please don't connect to production.",
    "Don’t start the server on port 80.",
    "When you write a page, do not load fonts from elsewhere.",
    "Commit often and do not build on Fridays.",
    "We do not work on Fridays.",
)


def note(text: str) -> WriteFile:
    return WriteFile("references/notes.md", text.encode())


async def change(it: Lessons, edit: Edit, author: Author) -> str:
    """Change the skill; return the refusal, or nothing if it took effect."""
    try:
        assert is_active(await it.keeper.edit_skill(NAME, edit, author)), edit
    except Refused as error:
        return str(error)
    return ""


async def test_a_skill_does_not_say_that_something_does_not_work(home: Path, figures: Figures) -> None:
    async with lessons(home) as it:
        it.say("Please check the page with the browser tool, and make a skill of it.")
        by = it.author("#1")
        described = PLAN.replace("Check a page before it is published.", "The browser is broken.")
        assert "- The browser is broken" in await change(it, Create(described, SkillOrigin.AGENT), by)
        assert await change(it, Create(PLAN, SkillOrigin.AGENT), by) == ""
        edits = [edit for text in CLAIMS for edit in (Patch("Open the page.", text), note(text))]
        saved = [edit for edit in edits if "Write what to do" not in await change(it, edit, by)]
        figures.tally(len(edits), got_in=len(saved), note=f"claims for a skill: {saved}")
        assert not saved


async def test_a_skill_may_say_what_to_do_when_something_fails(home: Path, figures: Figures) -> None:
    async with lessons(home) as it:
        it.say("Please check the page with the browser tool, and make a skill of it.")
        by = it.author("#1")
        assert await change(it, Create(PLAN, SkillOrigin.AGENT), by) == ""
        refused = [text for text in HONEST if await change(it, note(text), by)]
        figures(f"{len(HONEST)} honest notes, {len(refused)} refused")
        assert not refused


async def test_the_owner_may_have_a_skill_say_that_something_does_not_work(home: Path) -> None:
    step = Patch("Read its title.", "Read its title.\n\nThe browser tool does not work on this page.")
    async with lessons(home) as it:
        assert await change(it, Create(PLAN, SkillOrigin.AGENT), OWNER) == ""
        it.say("Does the browser tool work on this page?")
        assert "goes out of date" in await change(it, step, it.author("#1"))
        it.say("Note in the skill page-checks that the browser tool doesn't work on this page.")
        assert await change(it, step, it.author("#2")) == ""
        # What stands there already is in nobody's way.
        assert await change(it, Patch("Open the page.", "Open the page twice."), it.author("#1")) == ""
        assert await change(it, note("The API is down."), OWNER) == ""


def test_the_skills_that_come_with_hone_make_no_such_claim() -> None:
    assert {name: found for name in bundled.names() if (found := find_claims({}, bundled.files(name)))} == {}


@pytest.mark.parametrize("text", ORDERS)
async def test_what_the_owner_forbids_is_no_claim_and_has_no_end(home: Path, text: str) -> None:
    assert not is_negative_claim(text)
    async with lessons(home) as it:
        it.say(text)
        assert is_active(await it.note(Add(text), "#1"))
        assert "(until" not in (await it.active())[0]
