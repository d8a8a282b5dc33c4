"""G2: a question finds other forms of its words, and not every word that begins like one of them."""

from pathlib import Path
from types import ModuleType

import psycopg
import pytest

from hone.core.backend import Backend
from hone.features.backends import postgres as postgres_backend
from hone.features.backends import sqlite as sqlite_backend
from hone.features.backends.evaluation import QUESTIONS
from hone.features.backends.forms import has_form, roots
from tests import databases
from tests.backing import opened
from tests.conftest import Figures

postgres = databases.postgres
MODULES: dict[str, ModuleType] = {"sqlite": sqlite_backend, "postgres": postgres_backend}
FORMS = (
    ("ops/site", "Deployment of the site is done by heron.", "who is deploying?"),
    ("billing", "Invoices are written in francs.", "invoicing"),
    ("people/ines", "Ines studies biology.", "who is studying?"),
    ("health", "Allergic to peanuts.", "any allergies?"),
    ("etc", "The configuration lies below the root.", "where is it configured?"),
    ("kern", "Die Rechnungen gehen an Frau Kern.", "wohin mit der Rechnung?"),
    ("lunes", "La facturación cierra el lunes.", "¿cuándo salen las facturas?"),
    ("team", "The planning meeting is on Monday.", "when do we meet?"),
    ("churn", "Churn is shown by region.", "regional figures"),
    ("order", "Migrations run before the tests.", "migrating"),
    ("length", "Prefers short summaries.", "how to summarize"),
    ("hall", "The portrait hangs beside the station.", "which port, and in which state?"),
)
"""Key, value, question. What the last one asks for is not there."""


async def ask(backend: Backend, questions: tuple[tuple[str, str, str], ...]) -> tuple[int, int]:
    """How many answers are among the first three, and how many others come with them."""
    right = wrong = 0
    for key, value, _ in questions:
        await backend.store("ann", key, value)
    for key, _, question in questions:
        keys = [memory.key for memory in (await backend.query("ann", question))[:3]]
        right, wrong = right + (key in keys), wrong + len([each for each in keys if each != key])
    return right, wrong


@pytest.mark.parametrize("kind", MODULES)
async def test_a_question_finds_other_forms_of_its_words_and_nothing_that_only_begins_like_them(
    kind: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    figures: Figures,
) -> None:
    url = request.getfixturevalue("postgres") if kind == "postgres" else ""
    seen: dict[tuple[str, bool], tuple[int, int]] = {}
    for name, questions in (("bundled", QUESTIONS), ("other forms", FORMS)):
        for forms in (False, True):
            place = tmp_path / f"{name}-{forms}"
            place.mkdir()
            with monkeypatch.context() as patch:
                if not forms:
                    patch.setattr(MODULES[kind], "roots", lambda _: [])
                async with opened(kind, place, url) as backend:
                    seen[name, forms] = await ask(backend, questions)
            right, wrong = seen[name, forms]
            told = "with forms" if forms else "exact words"
            figures(f"{kind}, {name}, {told}: {right} of 12 found, {wrong} others among the first three")
    assert seen["bundled", True][0] >= seen["bundled", False][0]
    assert seen["bundled", True][1] <= seen["bundled", False][1]
    assert seen["other forms", True][0] == 11
    assert seen["other forms", True][1] <= seen["other forms", False][1]


async def test_other_forms_are_found_among_many_memories_whose_words_the_server_has_counted(
    tmp_path: Path, postgres: str
) -> None:
    async with opened("postgres", tmp_path, postgres) as backend:
        for number in range(120):
            await backend.store("ann", f"note-{number}", f"A common remark on gardens, number {number}.")
        await backend.store("ann", "ops/site", "Deployment of the site is done by heron.")
        async with await psycopg.AsyncConnection.connect(postgres, autocommit=True) as connection:
            await connection.execute("ANALYZE hone_memos")
        assert [each.key for each in await backend.query("ann", "who is deploying?")] == ["ops/site"]
        assert len(await backend.query("ann", "gardening")) == 10


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("deploying", "deploy", True),
        ("deploy", "deployment", True),
        ("deployment", "deploys", True),
        ("Rechnung", "Rechnungen", True),
        ("port", "portrait", False),
        ("deploy", "deplorable", False),
        ("state", "station", False),
        ("cat", "category", False),
    ],
)
def test_which_words_are_forms_of_one_another(one: str, other: str, same: bool) -> None:
    assert has_form(other, roots([one.lower()])) is same
