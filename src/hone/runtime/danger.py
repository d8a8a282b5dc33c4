"""Detect commands that need the owner's consent, and say why. This is advice; the sandbox is the boundary.

It covers what the sandbox allows, inside the working folder or over a permitted network. It also covers what
the owner would want to know about even if the sandbox blocks it.
"""

import re
from collections.abc import Iterator

from hone.core.regex import regex
from hone.runtime.commands import simple_commands
from hone.runtime.danger_git import judge_git
from hone.runtime.danger_paths import NamedPath, go, judge_deletion, judge_paths, judge_writing
from hone.runtime.danger_scripts import (
    FETCHED,
    HIDDEN,
    code_of,
    downloads,
    is_hidden,
    judge_source,
    read_code,
    runs,
)
from hone.runtime.simple import Simple
from hone.tools.doubts import Danger

_NOWHERE = "/folder"
"""Stands for an unknown working folder."""
_CALLS = 16
"""The most commands to read in one piece of code."""


def danger(command: str, folder: str = "") -> Danger | None:
    """Return everything dangerous in the command at once: agreeing to one thing is not agreeing to
    another."""
    found: dict[str, str] = {}
    root = folder or _NOWHERE
    places: dict[tuple[int, ...], str | None] = {(): root}
    fetched: set[str] = set()
    for each in simple_commands(command):
        here = _here(places, each.scope)
        alone = here == root and _stands_alone(each) and runs(each) not in fetched
        whole = str(each) if alone else command
        for reason in _reasons(each, NamedPath(root, here), fetched):
            found[f"{reason}: {whole}"] = reason
        places[each.scope] = go(here, each)
        fetched |= downloads(each)
    for expression, reason in _SHAPES.items():
        if expression.search(command) and reason not in found.values():
            found[f"{reason}: {command}"] = reason
    return Danger("; it ".join(dict.fromkeys(found.values())), "; ".join(found)) if found else None


def _here(places: dict[tuple[int, ...], str | None], scope: tuple[int, ...]) -> str | None:
    """Return the folder of a subshell: the one that its own `cd` led to, or that of the shell around it."""
    while scope not in places:
        scope = scope[:-1]
    return places[scope]


def _stands_alone(command: Simple) -> bool:
    """Tell whether a command's words say everything that it does, so that an approval can cover them
    alone."""
    depends = command.piped or command.inlined or command.open_ended or command.unread
    return not depends and command.input is None


def _reasons(command: Simple, place: NamedPath, fetched: set[str]) -> Iterator[str]:
    yield from judge_paths(command, place)
    of_itself = (rule(command) for rule in (_by_name, _by_verb, _by_option, judge_git, judge_source))
    yield from (reason for reason in of_itself if reason)
    if is_hidden(command):
        yield HIDDEN
    if runs(command) in fetched:
        yield FETCHED
    if any(map(_is_secret, _shown(command))):
        yield _CREDENTIALS
    if code := code_of(command):
        yield from _in_code(code, place)


def _in_code(code: str, place: NamedPath) -> Iterator[str]:
    found = read_code(code)
    if found.reason:
        yield found.reason
    yield from judge_deletion(found.deletes, place)
    yield from judge_writing(found.writes, place)
    if any(map(_is_secret, found.strings)):
        yield _CREDENTIALS
    for text in found.commands[:_CALLS]:
        for each in simple_commands(text):
            yield from _reasons(each, place, set())


_RIGHTS = "asks for rights beyond yours"
_SYSTEM = "changes the system it runs on"
_SERVICES = "changes the services of this machine"
_DISKS = "works on whole disks or overwrites them"
_LATER = "leaves something to run later"
_PACKAGE = "publishes a package"
_ELSEWHERE = "changes or deletes what runs elsewhere"
_CREDENTIALS = "touches credentials"
_NESTED = "is nested too deeply to be read"

_NAMES = {
    _RIGHTS: "sudo su doas pkexec run0 visudo setcap usermod useradd userdel groupmod passwd chpasswd",
    _SYSTEM: "chroot nsenter mount umount swapoff insmod rmmod modprobe iptables nft ufw setenforce",
    _DISKS: "fdisk sfdisk cfdisk gdisk parted wipefs shred cryptsetup blkdiscard lvremove mkswap",
    _LATER: "at batch systemd-run",
    _ELSEWHERE: "dropdb",
    "stops the machine": "shutdown reboot poweroff halt telinit",
    "ends every process that matches": "pkill killall killall5 skill",
}
_PROGRAMS = {name: reason for reason, names in _NAMES.items() for name in names.split()}
_ONLY_LOOKS = regex(
    r"mount( -l)?$|(fdisk|parted) (-l|--list)\b|iptables -[LS]\b|nft list\b|ufw status\b|at -l\b|passwd -S\b"
)

_ACTS = {
    _PACKAGE: (
        "npm publish, yarn publish, pnpm publish, bun publish, uv publish, poetry publish, flit publish, "
        "hatch publish, cargo publish, vsce publish, docker push, podman push, gem push, helm push, "
        "twine upload, mvn deploy, npm unpublish"
    ),
    "publishes a release": "gh release",
    _ELSEWHERE: (
        "terraform destroy, terraform apply, tofu destroy, tofu apply, kubectl delete, kubectl drain, "
        "helm uninstall, helm delete, gh repo delete, heroku apps:destroy, pulumi destroy"
    ),
}
_VERBS = {act: reason for reason, acts in _ACTS.items() for act in acts.split(", ")}
_ACTING = frozenset(act.partition(" ")[0] for act in _VERBS)
_VALUED = frozenset(
    {"-C", "-n", "-H", "-w", "--prefix", "--context", "--host", "--cwd", "--config", "--namespace"}
    | {"--filter", "--kubeconfig", "--workspace", "--project", "--directory", "--kube-context"}
)
"""Options of these programs that precede the verb and take a value."""


def _by_name(command: Simple) -> str:
    if command.unread:
        return _NESTED
    if command.elevated:
        return _RIGHTS
    if command.program.startswith("mkfs"):
        return _DISKS
    found = _PROGRAMS.get(command.program, "")
    return "" if found and _ONLY_LOOKS.match(str(command)) else found


def _by_verb(command: Simple) -> str:
    if command.program in {"aws", "gcloud", "az"}:
        deletes = any(re.match(r"(delete|terminate|rm|rb)(-|$)", word) for word in command.operands[:4])
        return _ELSEWHERE if deletes else ""
    if command.program not in _ACTING or any(word.startswith("--dry-run") for word in command.words):
        return ""
    pairs = zip(("", *command.words), command.words, strict=False)
    verbs = [word for before, word in pairs if before not in _VALUED and not word.startswith("-")]
    if command.program == "gh" and verbs[1:2] in (["list"], ["view"], ["download"]):
        return ""
    one, two = (" ".join((command.program, *verbs[:count])) for count in (1, 2))
    return _VERBS.get(one) or _VERBS.get(two, "")


_LOOKS = {"status", "list-units", "list-unit-files", "list-timers", "show", "cat", "is-active", "is-enabled"}
_SECRET = regex(
    r"(^|/)(\.ssh|\.gnupg|\.aws|\.azure|\.kube|\.netrc|\.git-credentials|\.pypirc|\.npmrc)(/|$)"
    r"|(^|/)id_(rsa|dsa|ecdsa|ed25519)$|(^|/)\.config/(gh|gcloud)(/|$)|(^|/)\.docker/config\.json$"
    r"|^/etc/(shadow|gshadow|sudoers)"
)
_SET_ID = regex(r"[ugo]*[+=][rwxst]*s|0*[2-7]\d{3}$")
_SEARCHERS = frozenset({"grep", "egrep", "fgrep", "rg", "ag", "ack"})


def _by_option(command: Simple) -> str:
    words, verb = command.words, next(iter(command.operands), "")
    match command.program:
        case "systemctl" | "launchctl" | "loginctl" if verb and verb not in _LOOKS:
            return _SERVICES
        case "service" if verb and command.operands[1:2] != ("status",):
            return _SERVICES
        case "crontab" if "l" not in command.flags:
            return _LATER
        case "sysctl" if command.flags & {"w", "p", "--write", "--load"} or "=" in verb:
            return _SYSTEM
        case "kill" if "-1" in words[1:]:
            return "ends every process of yours"
        case "chmod" if _SET_ID.match(verb):
            return "makes a file run with its owner's rights"
        case "docker" | "podman" if "--privileged" in command.flags or any(map(_lends_all, words)):
            return "gives a container the whole machine"
    return ""


def _lends_all(word: str) -> bool:
    is_mount = re.match(r"(--mount=)?type=bind,", word) is not None
    if is_mount and re.search(r",(source|src)=/(,|$)", word):
        return True
    return "docker.sock" in word or re.match(r"(--volume=|-v)?/:", word) is not None


def _shown(command: Simple) -> tuple[str, ...]:
    """Return the words that may be paths, without quoted text and search patterns."""
    if command.program in {"echo", "printf"}:
        return (*command.targets, *command.reads)
    words = command.words
    if command.program in _SEARCHERS:
        pattern = next(iter(command.operands), None)
        words = tuple(word for word in words if word != pattern)
    return (*words, *command.targets, *command.reads)


def _is_secret(word: str) -> bool:
    return _SECRET.search(word.rpartition("=")[2]) is not None


# Repeats have limits: a long command must not take long to check.
_SHAPES = {
    regex(
        r"(?<![\w:.])([\w:.]{1,40})\s{0,9}\(\)\s{0,9}\{[^}]{0,200}?\1\s{0,9}\|\s{0,9}\1\s{0,9}&"
    ): "starts itself again and again",
}
