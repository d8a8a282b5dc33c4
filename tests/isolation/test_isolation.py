"""J1, J3: nobody sees anything of another user, through any route, tool, command, job or metric."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from hone.core.jobs import State
from hone.stores.postgres.database import Rows
from hone.stores.postgres.user_admin import UserAdmin
from hone.web.tenants import find_workspaces
from tests import databases
from tests.isolation.layers import without_filters, without_row_security
from tests.isolation.people import Person, find_gaps
from tests.isolation.questions import ask_route
from tests.isolation.storm import (
    ask_routes,
    ask_tools,
    inhabited,
    list_routes,
    run_commands,
    watch_others,
    work_for_all,
)
from tests.tier import Figures, Tier

Layer = Callable[[str], AbstractContextManager[object]]
LAYERS: dict[str, Layer] = {
    "both walls": lambda url: nullcontext(),
    "filters alone": without_row_security,
    "row security alone": lambda url: without_filters(),
}
LASTING = ("contents", "documents", "knowledge", "prefixes", "sessions")


@pytest.mark.parametrize("walls", LAYERS)
async def test_of_other_users_secrets_none_is_in_any_answer(
    tmp_path: Path, tier: Tier, figures: Figures, walls: str
) -> None:
    count, questions = tier.size(short=4, full=50), tier.size(short=300, full=7_000)
    random = tier.random()
    with databases.new_database() as url:
        async with inhabited(tmp_path, url, count) as town:
            assert list(find_gaps(url, town.people)) == []
            hone = town.server.state.hone
            with LAYERS[walls](url):
                await ask_routes(town, questions, random)
                await ask_tools(town, questions // 10, random, find_workspaces(hone.home, hone.settings))
                await run_commands(town, questions // 10, random)
                await work_for_all(town)
                await watch_others(town, town.people[0], town.people[1])
                town.check_requests()
                town.check_metrics()
            asked = sum(town.asked.values())
            figures.tally(asked, got_in=len(town.leaks))
            assert town.leaks == []
            assert town.answered[200] > questions // 5, "most questions about oneself are answered"
            assert list(find_gaps(url, town.people, LASTING)) == [], "nobody's rows were changed by others"


async def test_without_both_walls_the_same_questions_find_secrets(tmp_path: Path, tier: Tier) -> None:
    """Otherwise the test above could not fail."""
    with databases.new_database() as url:
        async with inhabited(tmp_path, url, 3) as town:
            with without_row_security(url), without_filters():
                await ask_routes(town, 100, tier.random())
            assert len({each.partition(":")[0] for each in town.leaks}) >= 5


async def test_an_id_of_somebody_else_is_answered_and_looked_up_like_one_that_nobody_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figures: Figures
) -> None:
    """The same status, the same words, the same statements with as many rows: nothing to tell them by."""
    statements, ids = list[tuple[str, int]](), list[str]()
    execute = Rows.execute

    def noted(rows: Rows, query: str, **values: Any) -> Any:
        cursor = execute(rows, query, **values)
        if any(id in str(values) for id in ids):
            statements.append((query, cursor.rowcount))
        return cursor

    monkeypatch.setattr(Rows, "execute", noted)
    with databases.new_database() as url:
        async with inhabited(tmp_path, url, 2) as town:
            asker, about = town.people
            nobody, tried, told = Person("nobody"), 0, list[str]()
            async with town.visit(asker) as client:
                for route in list_routes():
                    answers = []
                    for person in (about, nobody):
                        ids[:] = person.known
                        statements.clear()
                        question = ask_route(route, person, Random(route.path))
                        response = await client.request(
                            question.method,
                            question.path,
                            params=question.query,
                            content=msgspec.json.encode(question.body),
                            headers={"content-type": "application/json"},
                        )
                        text = response.text
                        for number, id in enumerate(ids):
                            text = text.replace(id, f"id {number}")
                        answers.append((response.status_code, text, list(statements)))
                    if "{" in route.path and ":int" not in route.path:
                        tried += 1
                        if answers[0] != answers[1]:
                            told.append(f"{route.method} {route.path}: {answers}")
            figures.tally(tried, got_in=len(told))
            assert tried > 20
            assert told == []


async def test_a_worker_learns_nothing_for_a_user_beyond_their_cost_of_the_day(tmp_path: Path) -> None:
    with databases.new_database() as url:
        async with inhabited(tmp_path, url, 2) as town:
            stores = town.server.state.hone.stores
            assert stores.open_owner is not None
            spent, other = (stores.open_owner(each.name, tmp_path / "settling") for each in town.people)
            UserAdmin(url).limit(town.people[0].name, {"cost_per_day": 0.0})
            await work_for_all(town)
            [held], [done] = [await each.jobs.jobs() for each in (spent, other)]
            assert (held.state, held.tries) == (State.QUEUED, 0)
            assert "budget" in held.error
            assert done.state is State.DONE
