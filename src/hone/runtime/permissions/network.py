"""Consent to the network, by host, shared by web pages and commands."""

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from hone.core.messages import Role, Text
from hone.core.permissions import Action, Mode, Request
from hone.core.regex import regex
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.runtime.permissions.decide import ALLOW, Decision, Ruling, allow_by, deny_by
from hone.runtime.permissions.rules import (
    NETWORK,
    Rule,
    RuleSet,
    deny_command,
    exact_rules,
    host_of,
    match_command,
    match_host,
    parse_commands,
)

if TYPE_CHECKING:
    from hone.runtime.simple import Simple

URL = regex(r"https?://[^\s<>\"'`)\]}]+")
_NAME = regex(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)+")
_CLOSING = ".,;:!?…"
"""Characters that end a sentence but not a URL."""
_FLAGS = frozenset(
    (
        *("-s", "-S", "-f", "-L", "-I", "-v", "-q", "-O", "-sS", "-sL", "-sSL", "-fsS", "-fsSL"),
        *("--silent", "--fail", "--location", "--quiet"),
    )
)
_NAMING = {"curl": frozenset({"-o", "--output"}), "wget": frozenset({"-O"})}
"""Options followed by the name of a file to write."""
NEVER = 'The network is switched off: network = "never". Work without it.'


def named_hosts(transcript: Transcript) -> set[str]:
    """Return the hosts of the URLs in the owner's messages: naming a host is consent."""
    return {
        host_of(url.rstrip(_CLOSING))
        for node in transcript.nodes
        if node.message.role is Role.USER and node.trust is Trust.OWNER and not node.message.template
        for part in node.message.parts
        if isinstance(part, Text)
        for url in URL.findall(part.text)
    } - {""}


def hosts_of(request: Request) -> tuple[str, ...]:
    """Return the hosts that a request goes to; none if they are unknown."""
    if request.action is Action.FETCH:
        return tuple(filter(None, (host_of(request.subject),)))
    found = [_hosts(each) for each in parse_commands(request.subject)]
    return tuple(dict.fromkeys(host for hosts in found for host in hosts)) if all(found) else ()


def _hosts(command: "Simple") -> list[str]:
    """Return the hosts of a command that only fetches the URLs in its words."""
    if not command.plain:
        return []
    match command.argv:
        case ("curl" | "wget" as program, *words):
            operands = [*_operands(words, _NAMING[program])]
        case ("git", "clone" | "ls-remote", url, *rest) if not any(word.startswith("-") for word in rest):
            operands = [url]
        case _:
            return []
    hosts = [host_of(word) if URL.fullmatch(word) else "" for word in operands]
    return hosts if all(hosts) else []


def _operands(words: Sequence[str], naming: Collection[str]) -> Iterator[str]:
    rest = iter(words)
    for word in rest:
        if word in naming:
            next(rest, "")
        elif word not in _FLAGS:
            yield word


def _denied(request: Request, rules: RuleSet) -> Rule | None:
    """Return the rule that denies a request: for a command, by any word that may name a host."""
    hosts = {"", host_of(request.subject)}
    if request.action is Action.RUN:
        hosts = {"", *map(host_of, URL.findall(request.subject)), *_NAME.findall(request.subject.lower())}
    found = next(filter(None, (match_host(rules.deny, host) for host in sorted(hosts))), None)
    return found or (deny_command(rules.deny, NETWORK, request.subject) if request.network else None)


def judge_network(
    request: Request, mode: Mode, rules: RuleSet, setting: str, consented: Collection[str], *, any_host: bool
) -> Ruling:
    denied = _denied(request, rules)
    if denied:
        return deny_by(denied)
    if setting == "never":
        return Ruling(Decision.DENY, NEVER)
    if request.follows or setting == "allow" or mode is Mode.FULL or any_host:
        return ALLOW
    hosts = hosts_of(request)
    if hosts and all(host in consented or match_host(rules.allow, host) for host in hosts):
        return Ruling(Decision.ALLOW, f"You consented to {', '.join(hosts)}.")
    allowed = match_command(rules.allow, NETWORK, request.subject) if request.action is Action.RUN else ()
    if allowed:
        return allow_by(allowed[0])
    if hosts:
        wanted = tuple(Rule("web_fetch", host) for host in hosts)
        return Ruling(Decision.ASK, f"It goes to {', '.join(hosts)}.", wanted, network=True)
    wanted = exact_rules(NETWORK, request.subject)
    return Ruling(Decision.ASK, "It wants the network.", wanted, network=True)
