"""Reads, resumes, changes and reviews a home that commit beec753 wrote, and expects what that commit did."""

import json
import re
from pathlib import Path

import pytest

from tests.golden import Ended, assert_golden, environment, hone, placed, still, unpack
from tests.provider import Call, Provider, Say

FIXTURES = Path(__file__).parent.parent / "fixtures"
GOLDEN = FIXTURES / "home-beec753"
SESSIONS: dict[str, str] = json.loads((GOLDEN / "sessions.json").read_text())
LAST = 25
"""The last change in it."""


def each_session(*names: str) -> list[str]:
    return [word for name in names for word in ("--session", SESSIONS[name])]


DATA = {
    "log.json": ("log", "--json", "-n", "100"),
    "pending.json": ("pending", "--json"),
    "reviews.json": ("reviews", "--json"),
    "review-1.json": ("reviews", "show", "1", "--json"),
    "memory.json": ("memory", "show", "--project", "/srv/project", "--json"),
    "skills.json": ("skills", "list", "--json"),
    "sessions.json": ("sessions", "list", "--all", "--json"),
    "templates.json": ("templates", "list", "--json"),
    "template.json": ("templates", "show", "sums", "--json"),
    "template-stats.json": ("templates", "stats", "--json"),
    "experiments.json": ("experiment", "list", "--json"),
    "experiment.json": ("experiment", "show", "sums", "--json"),
    "report.json": ("experiment", "report", "sums", "--json"),
    "backend.json": ("backends", "info", "--json"),
    "traces.jsonl": ("traces", "export", "--raw"),
    "traces-redacted.jsonl": (
        "traces",
        "export",
        "--session",
        SESSIONS["calls"],
        "--session",
        SESSIONS["claude"],
    ),
    "traces-own.jsonl": ("traces", "export", "--session", SESSIONS["compacted"], "--no-reviews"),
    **{
        f"session-{name}.{suffix}": ("sessions", "export", id, "--format", format)
        for name, id in SESSIONS.items()
        for suffix, format in (("json", "json"), ("md", "markdown"))
        if suffix == "json" or name in ("calls", "compacted", "claude")
    },
}
SEARCH = ("sessions", "search", "amounts", "--json")
SCREENS = {
    "log": ("log", "-n", "100"),
    "log-skills": ("log", "--target", "skill:", "--actor", "curator"),
    **{f"show-{id}": ("show", str(id)) for id in (1, 2, 6, 7, 8, 9, 13, 14, 19, 20, 23, 24)},
    "diff-2": ("diff", "2"),
    "diff-3-25": ("diff", "3", "25"),
    "diff-22": ("diff", "22"),
    "pending": ("pending",),
    "reviews": ("reviews",),
    "review-1": ("reviews", "show", "1", "--full"),
    "review-2": ("reviews", "show", "2"),
    "memory": ("memory", "show", "--project", "/srv/project"),
    "skills": ("skills", "list"),
    "skill": ("skills", "show", "report-writing"),
    "sessions": ("sessions", "list"),
    "sessions-all": ("sessions", "list", "--all"),
    "search": ("sessions", "search", "amounts"),
    "tree": ("traces", "tree"),
    "templates": ("templates", "list"),
    "template": ("templates", "show", "sums"),
    "template-stats": ("templates", "stats"),
    "experiments": ("experiment", "list"),
    "experiment": ("experiment", "show", "sums"),
    "report": ("experiment", "report", "sums"),
    "curator-status": ("curator", "status"),
    "curator-show": ("curator", "show"),
    "curator-list": ("curator", "show", "--list"),
    "backends": ("backends", "list"),
    "backend": ("backends", "info"),
    "keys": ("backends", "keys"),
    "memo": ("backends", "show", "calendar/quarter"),
    "doctor-deep": ("doctor", "--deep"),
    "config": ("config",),
    **{
        f"session-{name}": ("sessions", "show", SESSIONS[name])
        for name in ("branch", "seeded", "failed", "claude")
    },
    "session-calls-full": ("sessions", "show", SESSIONS["calls"], "--full"),
    "session-compacted-earlier": ("sessions", "show", SESSIONS["compacted"], "--earlier"),
}
ORDERS = {
    "undo-entry-of-review": ("undo", "1"),
    "undo-skill-of-review": ("undo", "2"),
    "undo-edit-by-hand": ("undo", "7"),
    "undo-the-undo": ("undo", "6"),
    "undo-project-entry": ("undo", "9"),
    "undo-pin": ("undo", "14"),
    "undo-merge": ("undo", "23"),
    "approve-foreign": ("approve", "8", "--yes"),
    "approve-imported-skill": ("approve", "19", "--yes"),
    "reject-foreign": ("reject", "8"),
    "forget": ("forget", "3", "--yes"),
    "remove": ("memory", "rm", "Tuesdays"),
    "archive": ("skills", "archive", "adding-up"),
    "restore": ("skills", "restore", "night-trains"),
    "unpin": ("skills", "unpin", "report-writing"),
    "delete-session": ("sessions", "delete", SESSIONS["calls"], "--yes", "--lessons", "withdraw"),
    "delete-template": ("templates", "delete", "sums"),
    "delete-experiment": ("experiment", "delete", "sums"),
}
RESUMED = ("calls", "foreign", "branch", "compacted", "seeded", "loaded", "delegated", "anthropic", "failed")


LOOKS = (
    Call.of("z1", "session_search", query="what does the letter say of the hamster?"),
    Call.of("z2", "session_search", session=SESSIONS["calls"], at=4),
    Call.of("z3", "memory", action="list", evidence=[]),
    Call.of("z4", "skills_list"),
    Call.of("z5", "skill_view", name="report-writing"),
    Call.of("z6", "memory_backend", action="query", query="quarter"),
    Call.of("z7", "todo"),
)


class House:
    """The old home, unpacked, and a folder to work in. No session of that home used this folder."""

    def __init__(self, root: Path) -> None:
        self.home, self.folder = root / "home", root / "elsewhere"
        self.folder.mkdir()
        self.home.mkdir(mode=0o700)
        unpack(FIXTURES / "home-beec753.tar.gz", self.home)

    def hone(self, *arguments: str, provider: Provider | None = None) -> Ended:
        return hone(*arguments, env=environment(self.home, provider), folder=self.folder)

    def told(self, ended: Ended) -> str:
        """Return both streams and the exit code as one text."""
        err = f"--- standard error\n{ended.err}" if ended.err else ""
        code = f"--- exit code {ended.code}\n" if ended.code else ""
        return placed(f"{ended.out}{err}{code}", self.places)

    def still(self, body: bytes) -> str:
        return still(body.decode(), self.places)

    @property
    def places(self) -> dict[str, Path]:
        return {"home": self.home, "folder": self.folder}

    @property
    def files(self) -> str:
        """Return the files that the owner can read and edit, as JSON."""
        kept = ("MEMORY.md", "USER.md", "trusted.json", "projects", "skills", "templates", "experiments")
        paths = (path for path in self.home.rglob("*") if path.is_file() and not path.name.startswith("."))
        found = {str(path.relative_to(self.home)): path for path in sorted(paths)}
        texts = {name: path.read_text() for name, path in found.items() if name.split("/")[0] in kept}
        return json.dumps(texts, indent=1, ensure_ascii=False) + "\n"


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


@pytest.mark.parametrize("name", DATA)
def test_machine_output_of_an_old_home_is_identical_to_the_byte(house: House, name: str) -> None:
    assert_golden(GOLDEN / "data" / name, house.told(house.hone(*DATA[name])))


def test_a_search_in_an_old_home_has_the_same_form_and_finds_the_same_words(house: House) -> None:
    """What comes first may change with the ranking, and so may what is found only by its neighbors."""
    old, new = (GOLDEN / "data" / "search.json").read_text(), house.told(house.hone(*SEARCH))
    before, after = json.loads(old), json.loads(new)
    hits = {(each["session"], each["message"]): each for each in after.pop("hits")}
    kept = [each for each in before["hits"] if (each["session"], each["message"]) in hits]
    assert kept
    assert [hits[each["session"], each["message"]] for each in kept] == kept
    assert [each for each in before["hits"] if "amounts" in each["text"] and each not in kept] == []
    assert after == {name: value for name, value in before.items() if name != "hits"}
    assert [list(each) for each in hits.values()] == [list(before["hits"][0])] * len(hits)


@pytest.mark.parametrize("name", SCREENS)
def test_screens_of_an_old_home_are_identical(house: House, name: str) -> None:
    assert_golden(GOLDEN / "screens" / f"{name}.txt", house.told(house.hone(*SCREENS[name])))


@pytest.mark.parametrize("name", ORDERS)
def test_a_command_changes_an_old_home_as_beec753_did(house: House, name: str) -> None:
    ended = house.hone(*ORDERS[name])
    assert_golden(GOLDEN / "screens" / f"order-{name}.txt", house.told(ended))
    assert_golden(GOLDEN / "data" / "files" / f"{name}.json", house.files)
    again = house.hone("log", "--json", "-n", "100")
    found = [each for each in json.loads(again.out) if each["id"] > LAST]
    made = [each | {"at": "", "group": bool(each["group"])} for each in found]
    assert_golden(GOLDEN / "data" / "made" / f"{name}.json", json.dumps(made, indent=1) + "\n")


MESSAGE = '{"role":"'
"""Begins a message in both wire formats: inside a text its quotes would be escaped."""


def messages(body: str) -> list[str]:
    """Return the bytes of each message, without the system prompt and Hone's notes to the user's words."""
    found = [each for each in body.split(MESSAGE)[1:] if not each.startswith("system")]
    return [re.sub(r"<hone-note>.*?</hone-note>", "<hone-note>", each) for each in found]


SEARCHED = re.compile(r'(?<="z1","content":")(?:[^"\\]|\\.)*')
"""What the search found: its order is not that of beec753."""


def journal(body: str) -> str:
    """Return what the home contributes to the prompt: its skills and its journal."""
    system, _, _ = body.partition("Working folder: ")
    skills = re.findall(r"\\n- [a-z]+-[a-z-]+: .*?(?=\\n)", system)
    return "".join(skills) + system.partition("# Journal")[2]


def tool_names(body: str) -> list[str]:
    tools = json.loads(body)["tools"]
    return [each.get("name") or each["function"]["name"] for each in tools]


def then(name: str) -> str:
    """Return the request that beec753 sent."""
    return (GOLDEN / "data" / "requests" / f"{name}.json").read_text()


@pytest.mark.parametrize("name", RESUMED)
def test_an_old_session_resumes_with_the_same_messages_and_tools(house: House, name: str) -> None:
    with Provider(Say("", LOOKS), Say("Yes.")) as provider:
        done = house.hone("run", "-q", "-r", SESSIONS[name], "Are the amounts summed up?", provider=provider)
    assert (done.code, done.out, done.err) == (0, "Yes.\n", "")
    first, second = (body.decode() for body in provider.bodies)
    assert messages(first) == messages(then(f"resume-{name}-1"))
    assert tool_names(first) == tool_names(then(f"resume-{name}-1"))
    assert second.startswith(first.removesuffix("]}")) or name == "anthropic"
    if name in ("calls", "anthropic"):
        old = then(f"resume-{name}-2")
        assert messages(SEARCHED.sub("", second)) == messages(SEARCHED.sub("", old))
        [found], [before] = SEARCHED.findall(second), SEARCHED.findall(old)
        assert found.split("\\n")[0] == before.split("\\n")[0]
        assert "The build server is called **hamster**." in found


@pytest.mark.parametrize("name", ["claude", "hermes"])
def test_an_imported_session_resumes_with_a_new_prompt(house: House, name: str) -> None:
    with Provider(Say("Yes.")) as provider:
        done = house.hone("run", "-q", "-r", SESSIONS[name], "Do both pass?", provider=provider)
    assert (done.code, done.out, done.err) == (0, "Yes.\n", "")
    [body] = provider.bodies
    old, new = then(f"resume-{name}"), house.still(body)
    assert (messages(new), journal(new), tool_names(new)) == (messages(old), journal(old), tool_names(old))


@pytest.mark.parametrize("model", ["openai/m", "anthropic/m"])
def test_a_new_session_starts_with_the_knowledge_of_the_old_home(house: House, model: str) -> None:
    with Provider(Say("Hello.")) as provider:
        done = house.hone("run", "-q", "-m", model, "hi", provider=provider)
    assert (done.code, done.out, done.err) == (0, "Hello.\n", "")
    [body] = provider.bodies
    wire, _, _ = model.partition("/")
    old, new = then(f"new-{wire}"), house.still(body)
    assert "The team meets on Tuesdays." in journal(new)
    assert "- adding-up: Add up the amounts" in journal(new)
    assert (messages(new), journal(new), tool_names(new)) == (messages(old), journal(old), tool_names(old))


def test_the_queued_review_runs_exactly_once(house: House) -> None:
    words = "Name months in full, please."
    keep = Call.of("y1", "memory", action="add", target="user", text="Name months in full.", evidence=[words])
    with Provider(Say("", [keep])) as provider:
        first = house.hone("worker", "--once", provider=provider)
        second = house.hone("worker", "--once", provider=provider)
    assert_golden(GOLDEN / "screens" / "worker.txt", house.told(first))
    assert (first.code, second) == (0, Ended(0, "", ""))
    (asked,) = (body.decode() for body in provider.bodies)
    [question] = messages(asked)  # its prompt is another one by now, so no cache has it: it reads a digest
    read, _, _ = question.partition("Now look back")
    assert [
        each for each in ("How many months are in data.csv?", words) if f"user:\\n{each}" not in read
    ] == []
    job = json.loads(house.hone("reviews", "show", "2", "--json").out)
    assert (job["state"], job["tries"], len(job["made"]), job["error"]) == ("done", 1, 1, "")
    [made] = job["made"]
    assert (made["actor"], made["target"], made["standing"]) == ("review", "user", "active")
    assert made["diff"].endswith("+- Name months in full.")
    assert (
        house.home / "USER.md"
    ).read_text() == "- Always answer in one sentence.\n- Name months in full.\n"
    post = json.loads(house.hone("backends", "info", "--json").out)
    assert (post["waiting"], post["refused"], post["last_error"]) == (0, 0, None)
    assert_golden(GOLDEN / "screens" / "keys-after-worker.txt", house.hone("backends", "keys").out)


def test_a_manual_edit_in_an_old_home_is_recorded_as_the_owners(house: House) -> None:
    with (house.home / "MEMORY.md").open("a") as file:
        file.write("- Written by hand.\n")
    with (house.home / "skills" / "adding-up" / "SKILL.md").open("a") as file:
        file.write("Check the sum.\n")
    shown = house.hone("log", "-n", "2", "--json")
    made = {each["target"]: (each["actor"], each["deed"], each["diff"]) for each in json.loads(shown.out)}
    assert set(made) == {"memory", "skill:adding-up"}
    assert made["memory"][:2] == ("owner", "edit")
    assert made["memory"][2].endswith("+- Written by hand.")
    assert made["skill:adding-up"][2].endswith("+Check the sum.")


def test_traces_of_an_old_home_import_as_the_same_sessions(house: House, tmp_path: Path) -> None:
    file, env = tmp_path / "traces.jsonl", environment(tmp_path / "other")
    file.write_text(house.hone("traces", "export", "--raw").out)
    stored = hone("traces", "import", str(file), "--own", "--yes", env=env, folder=house.folder)
    assert (stored.code, stored.err) == (0, "")
    for name in ("calls", "branch", "seeded", "anthropic", "review"):
        shown = hone("sessions", "export", SESSIONS[name], "--format", "json", env=env, folder=house.folder)
        assert_golden(GOLDEN / "data" / f"session-{name}.json", shown.out)
