"""The table of docs/permissions.md, made from the decisions themselves."""

from collections.abc import Callable, Iterator
from pathlib import Path

from hone.core.permissions import Action, Mode, Request
from hone.runtime.permissions.decide import Decision, PathRules, Ruling, judge_command, judge_file, judge_use
from hone.runtime.permissions.network import judge_network
from hone.runtime.permissions.owner import Network, combine
from hone.runtime.permissions.rules import RuleSet

FOLDER, HOME = Path("/work/project"), Path("/home/me/.hone")
PLACES = PathRules(FOLDER, HOME, (HOME / "spill", HOME / "skills"))
NO_RULES = RuleSet()
SAID = {Decision.ALLOW: "yes", Decision.ASK: "asks", Decision.DENY: "no"}
Judge = Callable[[Mode], Ruling]

FILES = {
    "a file of the working folder": "/work/project/src/main.py",
    "a file elsewhere": "/home/me/notes.txt",
    "what runs by itself: `.git/hooks`, CI files, `.envrc`, `~/.bashrc` …": "/work/project/.envrc",
    "secrets: `.env`, `~/.ssh`, `~/.aws`, browser data …": "/work/project/.env",
    "Hone's home": "/home/me/.hone/hone.toml",
    "results that were too long, and approved skills, in Hone's home": "/home/me/.hone/spill/terminal-1.txt",
}
WRITTEN_ONLY = {"what runs by itself: `.git/hooks`, CI files, `.envrc`, `~/.bashrc` …"}
"""Read like any other file."""
READ_ONLY = {"results that were too long, and approved skills, in Hone's home"}
"""Written like the rest of Hone's home."""


def rows() -> Iterator[tuple[str, str, Judge]]:
    for name, path in FILES.items():
        if name not in WRITTEN_ONLY:
            yield "read", name, _file(Request("read_file", Action.READ, path))
    for name, path in FILES.items():
        if name not in READ_ONLY:
            yield "write", name, _file(Request("write_file", Action.WRITE, path))
    yield "run", "a command in the sandbox", _command(())
    yield "run", "a dangerous command", _command(("It deletes everything.",))
    yield "run", "a command where no sandbox holds", _command(("No sandbox confines it.",))
    yield "run", "a command with the network", _command((), network=True)
    yield "fetch", "a page of a host that your message names", _page({"docs.example"})
    yield "fetch", "any other page", _page(set())
    yield "fetch", 'any page, with `network = "never"`', _page({"docs.example"}, "never")
    yield "use", "a plugin's tool that writes or executes", _use()


def table() -> str:
    head = ["| | | plan | ask | auto | full |", "|---|---|---|---|---|---|"]
    lines = [
        f"| {action} | {name} | {' | '.join(SAID[judge(mode).decision] for mode in Mode)} |"
        for action, name, judge in rows()
    ]
    return "\n".join([*head, *lines])


def _file(request: Request) -> Judge:
    return lambda mode: judge_file(request, mode, NO_RULES, PLACES)


def _command(doubts: tuple[str, ...], *, network: bool = False) -> Judge:
    request = Request("terminal", Action.RUN, "make it", doubts=doubts, network=network)

    def judge(mode: Mode) -> Ruling:
        rulings = [judge_command(request, mode, NO_RULES)]
        if network:
            rulings.append(judge_network(request, mode, NO_RULES, "ask", (), any_host=False))
        return combine(rulings)

    return judge


def _page(consented: set[str], setting: Network = "ask") -> Judge:
    request = Request("web_fetch", Action.FETCH, "https://docs.example/")
    return lambda mode: judge_network(request, mode, NO_RULES, setting, consented, any_host=False)


def _use() -> Judge:
    return lambda mode: judge_use(Request("launch", Action.USE, "{}"), mode, NO_RULES)
