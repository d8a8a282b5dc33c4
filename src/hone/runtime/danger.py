"""Detect commands that need the owner's consent, and say why. This is advice; the sandbox is the boundary.

It covers what the sandbox allows, inside the working folder or over a permitted network. It also covers what
the owner would want to know about even if the sandbox blocks it.
"""

import os
import re
from collections.abc import Sequence

from hone.core.regex import regex
from hone.runtime.commands import simple_commands
from hone.runtime.simple import Simple
from hone.tools.doubts import Danger


def danger(command: str, folder: str = "") -> Danger | None:
    """Everything dangerous in the command at once: agreeing to one thing is not agreeing to another."""
    found: dict[str, str] = {}
    for each in simple_commands(command):
        for reason in _reasons(each, folder):
            found[f"{reason}: {each}"] = reason
    for expression, reason in _SHAPES.items():
        if expression.search(command) and reason not in found.values():
            found[f"{reason}: {command}"] = reason
    return Danger("; it ".join(dict.fromkeys(found.values())), "; ".join(found)) if found else None


def _reasons(command: Simple, folder: str) -> list[str]:
    of_place = (rule(command, folder) for rule in (_deletes, _opens_wide, _writes_outside))
    of_itself = (rule(command) for rule in (_by_name, _by_verb, _by_option, _git, _runs_what_it_fetches))
    return [reason for reason in (*of_place, *of_itself) if reason]


_RIGHTS = "asks for rights beyond yours"
_SYSTEM = "changes the system it runs on"
_SERVICES = "changes the services of this machine"
_DISKS = "works on whole disks or overwrites them"
_LATER = "leaves something to run later"
_PACKAGE = "publishes a package"
_ELSEWHERE = "changes or deletes what runs elsewhere"
_FETCHED = "runs what it fetches from the network"
_UNCOMMITTED = "throws away changes that are not committed"

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

_ACTS = {
    _PACKAGE: (
        "npm publish, yarn publish, pnpm publish, bun publish, uv publish, poetry publish, flit publish, "
        "hatch publish, cargo publish, vsce publish, docker push, podman push, gem push, helm push, "
        "twine upload, mvn deploy, npm unpublish"
    ),
    "publishes a release": "gh release",
    _ELSEWHERE: (
        "terraform destroy, terraform apply, tofu destroy, tofu apply, kubectl delete, kubectl drain, "
        "gh repo delete, heroku apps:destroy, pulumi destroy"
    ),
}
_VERBS = {act: reason for reason, acts in _ACTS.items() for act in acts.split(", ")}


def _by_name(command: Simple) -> str:
    if command.elevated:
        return _RIGHTS
    if command.program.startswith("mkfs"):
        return _DISKS
    return _PROGRAMS.get(command.program, "")


def _by_verb(command: Simple) -> str:
    verb = " ".join((command.program, *command.operands[:1]))
    longer = " ".join((command.program, *command.operands[:2]))
    if verb == "gh release" and command.operands[1:2] in {("list",), ("view",), ("download",)}:
        return ""
    if command.program in {"aws", "gcloud", "az"}:
        deletes = any(re.match(r"(delete|terminate|rm|rb)(-|$)", word) for word in command.operands[:4])
        return _ELSEWHERE if deletes else ""
    return _VERBS.get(verb) or _VERBS.get(longer, "")


_LOOKS = {"status", "list-units", "list-unit-files", "list-timers", "show", "cat", "is-active", "is-enabled"}
_SECRET = regex(
    r"(^|/)(\.ssh|\.gnupg|\.aws|\.azure|\.kube|\.netrc|\.git-credentials|\.pypirc|\.npmrc)(/|$)"
    r"|(^|/)id_(rsa|dsa|ecdsa|ed25519)$|(^|/)\.config/(gh|gcloud)(/|$)|(^|/)\.docker/config\.json$"
    r"|^/etc/(shadow|gshadow|sudoers)"
)
_SET_ID = regex(r"[ugo]*[+=][rwxst]*s|0*[2-7]\d{3}$")


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
        case "chmod" if any(_SET_ID.match(word) for word in words):
            return "makes a file run with its owner's rights"
        case "docker" | "podman" if "--privileged" in command.flags or any(map(_lends_all, words)):
            return "gives a container the whole machine"
    if any(_SECRET.search(path.rpartition("=")[2]) for path in (*words, *command.targets)):
        return "touches credentials"
    return ""


def _lends_all(word: str) -> bool:
    return "docker.sock" in word or re.match(r"(--volume=|-v)?/:", word) is not None


_FORCED = {"f", "d", "--force", "--force-with-lease", "--mirror", "--delete", "--prune"}


def _git(command: Simple) -> str:
    if command.program != "git":
        return ""
    flags = command.flags
    match command.operands:
        case ("push", *rest) if flags & _FORCED or any(re.match(r"[+:]\S", word) for word in rest):
            return "rewrites or deletes what was pushed"
        case (("filter-branch" | "filter-repo"), *_) | ("reflog", "expire", *_) | ("update-ref", *_):
            return "rewrites a repository's history"
        case ("branch", *_) if "D" in flags:
            return "deletes a branch that may not be merged"
        case ("clean", *_) if flags & {"f", "--force"}:
            return "deletes files that git does not know"
        case ("reset", *_) if "--hard" in flags:
            return _UNCOMMITTED
        case (("checkout" | "restore"), *rest) if {".", ":/", "*"} & {*rest}:
            return _UNCOMMITTED
        case ("stash", "drop" | "clear", *_):
            return _UNCOMMITTED
    return ""


_FETCHERS = {"curl", "wget", "fetch", "http", "https", "aria2c"}
_INTERPRETERS = {
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    "fish",
    "python",
    "python3",
    "perl",
    "ruby",
    "node",
    "php",
}


def _runs_what_it_fetches(command: Simple) -> str:
    # With a script or an expression of its own, what it is fed is only data.
    script = command.operands and command.operands[0] != "-" and "s" not in command.flags
    if command.program in _INTERPRETERS and not script and not command.flags & {"c", "e", "m"}:
        return _FETCHED if _FETCHERS & {*command.piped} else ""
    return ""


_HOMES = ("~", "$HOME", "${HOME}")
_FREE = ("/tmp/", "/var/tmp/", "/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/fd/", "/dev/shm/")


def _is_outside(path: str, folder: str) -> bool:
    if path.startswith(_HOMES):
        return True
    whole = os.path.normpath(os.path.join(folder or "/folder", path))
    root = folder or "/folder"
    return whole != root and not whole.startswith(root + os.sep) and not whole.startswith(_FREE)


def _is_everything(path: str, folder: str) -> bool:
    bare = path.rstrip("/")
    return bare in {"", ".", "*", "./*", "..", ".*", "$PWD", folder} or bare.startswith(("/*", "../*"))


def _deletes(command: Simple, folder: str) -> str:
    targets: Sequence[str] = ()
    if command.program == "rm" and command.flags & {"r", "R", "--recursive"}:
        targets = command.operands
    elif command.program == "find" and "-delete" in command.words and not _narrows(command.words):
        targets = command.operands[:1] or (".",)
    if any(re.search(r"(^|/)\.git/?$", path) for path in targets):
        return "deletes a repository's history"
    if any(_is_everything(path, folder) for path in targets):
        return "deletes everything in a folder"
    outside = any(_is_outside(path, folder) for path in targets)
    return "deletes folders outside the working folder" if outside else ""


def _narrows(words: Sequence[str]) -> bool:
    return any(word.startswith(("-name", "-iname", "-path", "-regex", "-empty", "-newer")) for word in words)


def _opens_wide(command: Simple, folder: str) -> str:
    if command.program not in {"chmod", "chown", "chgrp"} or not command.flags & {"R", "--recursive"}:
        return ""
    paths = command.operands[1:]
    wide = any(_is_outside(path, folder) or _is_everything(path, folder) for path in paths)
    return "changes owners or rights of a whole tree" if wide else ""


def _writes_outside(command: Simple, folder: str) -> str:
    tee = command.operands if command.program == "tee" else ()
    images = [word[3:] for word in command.words if command.program == "dd" and word.startswith("of=")]
    written = [path for path in (*command.targets, *tee, *images) if not path.isdigit() and path != "-"]
    outside = [path for path in written if _is_outside(path, folder)]
    if any(path.startswith("/dev/") for path in outside):
        return "writes to a device"
    return "writes a file outside the working folder" if outside else ""


# Repeats have limits: a command may be long, and must not keep us busy.
_SHAPES = {
    regex(
        r"(?<![\w:.])([\w:.]{1,40})\s{0,9}\(\)\s{0,9}\{[^}]{0,200}?\1\s{0,9}\|\s{0,9}\1\s{0,9}&"
    ): "starts itself again and again",
    regex(
        r"\b(?:sh|bash|zsh|python3?|perl|ruby|eval|source)\b[^|;&\n]{0,200}?"
        r"(?:\$\(|<\(|`)\s{0,9}(?:curl|wget|fetch)\b"
    ): _FETCHED,
}
