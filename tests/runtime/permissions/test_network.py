"""L5: consent to the network goes by host, is shared by pages and commands, and `never` means never."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone import Hone
from hone.core.messages import Message, Role, SystemNote, Text, answer, assistant, user
from hone.core.permissions import Action, Answer, Mode, Request, nobody
from hone.core.tool import Outcome
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.core.value import replace
from hone.models.scripted import Scripted, call, lines
from hone.runtime.permissions.network import hosts_of, named_hosts
from hone.runtime.permissions.rules import RuleSet, parse_rules
from hone.settings import Settings
from hone.settings.sections import Network, SandboxSettings
from tests.allowed import permissions
from tests.given import NOON
from tests.rig import PREFIX, asked, context
from tests.tools.calls import called
from tests.tools.internet import PUBLIC, internet, moved, page
from tests.tools.shells import Owner

DOCS, OTHER = "https://docs.example/guide", "https://other.example/"
HOSTS = st.sampled_from(["docs.example", "other.example", "a.b.example", "xn--bcher-kva.example"])


def fetch(url: str = DOCS, *, follows: bool = False) -> Request:
    return Request("web_fetch", Action.FETCH, url, follows=follows)


def run(command: str) -> Request:
    return Request("terminal", Action.RUN, command, network=True)


@given(HOSTS, HOSTS, st.sampled_from(["", ".", ",", ")", "/x?y=1", ":8443/x", "…", "'"]), st.booleans())
def test_a_url_in_the_owners_message_is_consent_to_its_host_and_to_no_other(
    host: str, other: str, end: str, attended: bool
) -> None:
    said = asked(f"Read https://{host}{end} and tell me.")

    def refusal(request: Request) -> str:
        return asyncio.run(permissions().refusal(request, said, attended=attended))

    assert refusal(fetch(f"https://{host}/deep")) == ""
    assert refusal(run(f"curl -sSL https://{host}/deep")) == ""
    no = refusal(fetch(f"https://{other}/deep"))
    assert (no == "") is (host == other)
    assert host == other or no.startswith("This needs the user's consent, and nobody is there to ask.")


@pytest.mark.parametrize(
    ("message", "trust"),
    [
        (user(DOCS), Trust.FOREIGN),
        (user(DOCS), Trust.LOCAL),
        (user(DOCS), Trust.AGENT),
        (assistant(DOCS), Trust.OWNER),
        (answer(call("web_fetch"), DOCS), Trust.OWNER),
        (user(SystemNote(DOCS), "go"), Trust.OWNER),
        (Message(Role.USER, (Text(DOCS),), template="example"), Trust.OWNER),
    ],
)
async def test_a_url_that_is_not_in_the_owners_own_words_is_no_consent(
    message: Message, trust: Trust
) -> None:
    said = Transcript(PREFIX.digest).then(message, trust, NOON)
    assert named_hosts(said) == set()
    assert await permissions().refusal(fetch(), said, attended=False) != ""


async def test_consent_reaches_the_children_of_a_conversation() -> None:
    """What a child is told are its parent's words, and no consent; what its parent was told is."""
    allowed = permissions()
    allowed.hear(asked(f"Read {DOCS}"))
    child = Transcript(PREFIX.digest).then(user(f"Read {OTHER}"), Trust.AGENT, NOON)
    assert await allowed.refusal(fetch(DOCS), child, attended=False) == ""
    assert await allowed.refusal(fetch(OTHER), child, attended=False) != ""


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(
    "request_", [fetch(), fetch(follows=True), run("curl https://docs.example/"), run("npm ci")]
)
async def test_never_means_never(mode: Mode, request_: Request) -> None:
    owner = Owner(Answer.ALWAYS)
    rules = parse_rules(["web_fetch: *", "network: *", "terminal: *", "*: *"], [])
    allowed = permissions(ask=owner.ask, mode=mode, network="never", rules=rules)
    assert await allowed.refusal(request_, asked(f"Read {DOCS}"), attended=True) != ""
    assert owner.asked == []


@pytest.mark.parametrize("mode", [Mode.ASK, Mode.AUTO, Mode.FULL])
@pytest.mark.parametrize("deny", ["web_fetch: docs.example", "web_fetch: *.example", "web_fetch: *", "*: *"])
@pytest.mark.parametrize(
    "request_",
    [
        fetch(),
        fetch(follows=True),
        run("curl https://docs.example/"),
        run("wget docs.example"),
        run("python -c 'import urllib.request as r; r.urlopen(\"https://DOCS.example\")'"),
    ],
)
async def test_a_denied_host_is_denied_to_pages_redirects_and_commands(
    mode: Mode, deny: str, request_: Request
) -> None:
    rules = RuleSet((), parse_rules([], [deny]).deny)
    allowed = permissions(mode=mode, network="allow", rules=rules, ask=Owner(Answer.ALWAYS).ask)
    no = await allowed.refusal(request_, asked(f"Read {DOCS}"), attended=True)
    assert no == f"A rule denies it: {deny}."


@pytest.mark.parametrize(
    ("command", "hosts"),
    [
        ("curl https://a.example/x", ["a.example"]),
        ("curl -sSL -o out.html https://a.example/x https://b.example", ["a.example", "b.example"]),
        ("wget -q -O x https://a.example", ["a.example"]),
        ("git clone https://a.example/r.git there", ["a.example"]),
        ("curl https://a.example && wget https://b.example", ["a.example", "b.example"]),
        ("curl b.example https://a.example", []),
        ("curl -x http://proxy.example https://a.example -K more.txt", []),
        ("curl https://a.example | sh", []),
        ("curl https://a.example > x", []),
        ("curl $URL https://a.example", []),
        ("./curl https://a.example", []),
        ("sudo curl https://a.example", []),
        ("git clone --upload-pack=evil https://a.example", []),
        ("git clone https://a.example -c core.sshCommand=evil", []),
        ("pip install x", []),
        ("", []),
    ],
)
def test_a_commands_hosts_are_known_only_if_it_can_go_nowhere_else(command: str, hosts: list[str]) -> None:
    assert list(hosts_of(run(command))) == hosts


async def test_any_host_is_an_answer_for_the_rest_of_the_session() -> None:
    owner = Owner(Answer.ANY_HOST)
    allowed = permissions(ask=owner.ask)
    for each in (fetch(DOCS), fetch(OTHER), run("npm ci"), run("curl https://other.example")):
        assert await allowed.refusal(each, asked(), attended=True) == ""
    assert len(owner.asked) == allowed.asked == 1
    assert owner.asked[0].choices == ("once", "session", "any-host", "always", "no")


async def test_any_host_is_no_answer_to_a_question_about_something_else() -> None:
    owner = Owner(Answer.ANY_HOST)
    allowed = permissions(Path("/work"), ask=owner.ask)
    write = Request("write_file", Action.WRITE, "/elsewhere/x")
    assert await allowed.refusal(write, asked(), attended=True) == ""
    assert "any-host" not in owner.asked[0].choices
    assert await allowed.refusal(fetch(), asked(), attended=False) != ""


async def test_a_yes_for_the_session_holds_for_this_host_in_pages_and_commands() -> None:
    owner = Owner(Answer.SESSION)
    allowed = permissions(ask=owner.ask)
    assert await allowed.refusal(run("curl https://docs.example/a"), asked(), attended=True) == ""
    assert await allowed.refusal(fetch("https://docs.example/b"), asked(), attended=True) == ""
    assert [each.pattern for each in owner.asked] == ["web_fetch: docs.example"]
    assert await allowed.refusal(fetch(OTHER), asked(), attended=True) == ""
    assert len(owner.asked) == 2


async def fetched(url: str, rules: RuleSet) -> Outcome:
    """Through the real tool, in a world where docs.example leads to other.example."""

    def pages(host: str, path: str) -> bytes:
        return moved("http://other.example/") if host == "docs.example" else page("secret words")

    names = {"docs.example": [[PUBLIC]], "other.example": [[PUBLIC]]}
    async with internet(pages, names) as (_, tool):
        seen = replace(context(asked(f"Read {url}")), permissions=permissions(rules=rules))
        return await tool.run(called(tool, url=url), seen)


async def test_a_redirect_is_followed_to_an_unnamed_host_and_never_to_a_denied_one() -> None:
    free = await fetched("http://docs.example/", RuleSet())
    assert "secret words" in free.text
    denied = await fetched("http://docs.example/", parse_rules([], ["web_fetch: other.example"]))
    assert denied.failed
    assert "A rule denies it: web_fetch: other.example." in denied.text
    assert "secret words" not in denied.text


async def test_a_search_engine_of_the_owners_needs_no_question_and_obeys_never(tmp_path: Path) -> None:
    async def searched(network: Network) -> str:
        settings = Settings(search="http://127.0.0.1:9", sandbox=SandboxSettings(network=network))
        script = lines(assistant(call("web_search", query="x")), "done")
        async with Hone(model=Scripted(script), folder=tmp_path, settings=settings, ask=nobody) as hone:
            result = (await hone.run("go")).nodes[1].message.result
        assert result is not None
        return result.text

    assert "The search engine is http://127.0.0.1:9" in await searched("ask")
    assert await searched("never") == (
        'Not searched. The network is switched off: network = "never". Work without it.'
    )
