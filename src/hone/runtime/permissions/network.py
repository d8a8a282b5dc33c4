"""Consent to the network, by host, shared by web pages and commands."""

from collections.abc import Collection, Iterator

from hone.core.messages import Role, Text
from hone.core.permissions import Action, Mode, Request
from hone.core.regex import regex
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.runtime.commands import simple_commands
from hone.runtime.permissions.decide import ALLOW, Decision, Ruling
from hone.runtime.permissions.rules import (
    NETWORK,
    Rule,
    RuleSet,
    exact_rules,
    host_of,
    match_command,
    match_host,
)

URL = regex(r"https?://[^\s<>\"'`)\]}]+")
_GETTERS = frozenset({"curl", "wget"})
NEVER = 'The network is switched off: network = "never". Work without it.'


def named_hosts(transcript: Transcript) -> set[str]:
    """Return the hosts of the URLs in the owner's own messages: naming one is consent."""
    return {
        host_of(url)
        for node in transcript.nodes
        if node.message.role is Role.USER and node.trust is Trust.OWNER
        for part in node.message.parts
        if isinstance(part, Text)
        for url in URL.findall(part.text)
    } - {""}


def hosts_of(request: Request) -> tuple[str, ...]:
    """Return the hosts a request goes to; none if that cannot be told."""
    if request.action is Action.FETCH:
        return tuple(filter(None, (host_of(request.subject),)))
    return tuple(dict.fromkeys(_hosts(request.subject)))


def _hosts(text: str) -> Iterator[str]:
    """Yield the hosts of a command whose parts are all plain and get the URLs they are given."""
    commands = [*simple_commands(text)]
    found = [[host_of(word) for word in each.words if URL.match(word)] for each in commands]
    plain = all(each.plain and _gets(each.program, each.words) for each in commands)
    if plain and all(found) and all(host for hosts in found for host in hosts):
        yield from (host for hosts in found for host in hosts)


def _gets(program: str, words: tuple[str, ...]) -> bool:
    return program in _GETTERS or (program == "git" and words[:1] in {("clone",), ("ls-remote",)})


def judge_network(
    request: Request, mode: Mode, rules: RuleSet, setting: str, consented: Collection[str], *, any_host: bool
) -> Ruling:
    hosts = hosts_of(request)
    denied = next(filter(None, (match_host(rules.deny, host) for host in hosts)), None)
    if denied:
        return Ruling(Decision.DENY, f"A rule denies it: {denied}.")
    if setting == "never":
        return Ruling(Decision.DENY, NEVER)
    if request.follows or setting == "allow" or mode is Mode.FULL or any_host:
        return ALLOW
    if hosts and all(host in consented or match_host(rules.allow, host) for host in hosts):
        return ALLOW
    if request.action is Action.RUN and match_command(rules.allow, NETWORK, request.subject):
        return ALLOW
    if hosts:
        return Ruling(
            Decision.ASK, f"It goes to {', '.join(hosts)}.", tuple(Rule("web_fetch", host) for host in hosts)
        )
    return Ruling(Decision.ASK, "It wants the network.", exact_rules(NETWORK, request.subject))
