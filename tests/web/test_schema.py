"""I3: the description is true to its routes, and nothing that can be sent to them makes the server fail."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import httpx2
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode

from hone.features.templates.part import TemplatesPart
from tests.conftest import Figures, Tier
from tests.web.rig import Running, running
from tests.web.test_api import LIKE, SKILL, chatted, tale
from tests.web.test_views import TEMPLATE, study_of

QUIET = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
"""What is generated is the description's business, and not ours."""


async def furnished(visit: Running) -> dict[str, Any]:
    """Something of everything there is, by the name of the placeholder that asks for it."""
    session = await chatted(visit, LIKE)
    await visit.post(f"/api/sessions/{session}/review")
    await visit.state.hone.background.drain()
    await visit.post("/api/skills", name="csv-import", text=SKILL)
    study_of(visit.state.hone.home)
    await visit.state.hone.part(TemplatesPart).store.add(TEMPLATE)
    await visit.post("/api/curator/rounds")
    return {
        "session": session,
        "change": 2,
        "review": 1,
        "name": "csv-import",
        "part": "user",
        "path": "SKILL.md",
        "template": "notes",
        "experiment": "tidy",
        "round": 1,
        "login": "0" * 16,
    }


def fuzz(schema: Any, visit: Running, known: dict[str, Any], examples: int) -> Counter[int]:
    """Every operation, with what it takes and what it does not, with ids that are there and that are not."""
    statuses: Counter[int] = Counter()
    with httpx2.Client(timeout=60, headers={"authorization": f"Bearer {visit.key}"}) as client:

        def try_out(case: Any) -> None:
            asked = case.as_transport_kwargs(base_url=visit.url)
            code = send(client, asked)
            statuses[code] += 1
            assert code < 500, f"{code}: {asked}"

        for result in schema.get_all_operations():
            operation = result.ok()
            names = {each.name for each in operation.path_parameters}
            there = {name: value for name, value in known.items() if name in names}
            for mode in GenerationMode:
                for path in [None, there] if there else [None]:
                    run(try_out, operation.as_strategy(generation_mode=mode, path_parameters=path), examples)
    return statuses


def run(try_out: Any, strategy: Any, examples: int) -> None:
    limits = settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=QUIET,
    )
    try:
        limits(given(strategy)(try_out))()  # type: ignore[no-untyped-call]
    except Unsatisfiable:
        return  # an operation that takes nothing can be given nothing wrong


def send(client: httpx2.Client, asked: dict[str, Any]) -> int:
    """The status. Streams are left as soon as they begin."""
    body: dict[str, Any] = {}
    if "json" in asked:
        body["json"] = asked["json"]
    elif asked.get("data") is not None:
        body["content"] = asked["data"]
    headers = {"content-type": "application/json"}
    with client.stream(
        asked["method"], asked["url"], params=asked.get("params"), headers=headers, **body
    ) as response:
        if "event-stream" not in response.headers.get("content-type", ""):
            response.read()
        return int(response.status_code)


async def test_whatever_the_description_allows_or_forbids_the_server_does_not_fail(
    home: Path, tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    examples = tier.size(short=2, full=100)
    async with running(home, tmp_path, tale) as visit:
        known = await furnished(visit)
        schema = schemathesis.openapi.from_dict(await visit.get("/openapi.json"))
        statuses = await asyncio.to_thread(fuzz, schema, visit, known, examples)
        assert statuses[200] > 0
        assert statuses[400] > 0
        assert sum(count for code, count in statuses.items() if code >= 500) == 0
        counts = ", ".join(f"{count:,} × {code}" for code, count in sorted(statuses.items()))
        figures(f"{statuses.total():,} generated requests tried, 0 server errors ({counts})")
