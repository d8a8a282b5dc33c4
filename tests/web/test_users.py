"""J1, J3: users of one server see nothing of each other, and nobody comes in without a valid key."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2

from hone.core.messages import Message, Role, assistant
from hone.features.users.service import make_key
from hone.settings import Settings
from hone.settings.sections import ServeSettings
from hone.stores.postgres.user_admin import UserAdmin
from tests import databases
from tests.web.rig import PATIENCE, Running, running


def echo(messages: Sequence[Message]) -> Message:
    said = [each for each in messages if each.role is Role.USER][-1].text
    return assistant(f"{len(messages)}: {said}")


class Team:
    """A server with users."""

    def __init__(self, server: Running, admin: UserAdmin) -> None:
        self.server = server
        self.admin = admin

    def add(self, name: str, **limits: float) -> str:
        self.admin.add(name, limits)
        return make_key(self.admin, name, "first", "person", None)

    @asynccontextmanager
    async def client(self, key: str = "", **headers: str) -> AsyncIterator[httpx2.AsyncClient]:
        given = {"authorization": f"Bearer {key}"} if key else {}
        async with httpx2.AsyncClient(
            base_url=self.server.url, headers={**given, **headers}, timeout=PATIENCE
        ) as client:
            yield client


@asynccontextmanager
async def serving(tmp_path: Path, script: object = echo, **serve: object) -> AsyncIterator[Team]:
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    with databases.new_database() as url:
        settings = Settings(database=url, serve=ServeSettings(**serve))  # type: ignore[arg-type]
        async with running(tmp_path / "home", tmp_path / "work", script, settings=settings) as server:  # type: ignore[arg-type]
            yield Team(server, UserAdmin(url))


async def test_each_user_has_their_own_conversations(tmp_path: Path) -> None:
    async with serving(tmp_path) as team:  # noqa: SIM117  users are added before they come
        async with team.client(team.add("alice")) as alice, team.client(team.add("bob")) as bob:
            begun = await alice.post("/api/sessions", json={"text": "My word is heliotrope."})
            assert begun.status_code == 202, begun.text
            session = begun.json()["session"]
            own = await alice.get(f"/api/sessions/{session}")
            assert own.json()["messages"][0]["parts"][-1]["text"] == "My word is heliotrope."
            others = await bob.get(f"/api/sessions/{session}")
            unknown = await bob.get("/api/sessions/0123456789abcdef")
            assert (others.status_code, unknown.status_code) == (404, 404)
            assert (await bob.get("/api/sessions")).json()["sessions"] == []
            assert (await team.server.get("/api/sessions"))["sessions"] == []
            found = (await bob.get("/api/search", params={"q": "heliotrope"})).text
            assert "heliotrope" not in found.replace('"q":"heliotrope"', "")
