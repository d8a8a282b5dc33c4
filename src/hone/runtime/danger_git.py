"""Judge git commands: what they discard, and what they rewrite."""

import re
from collections.abc import Sequence

from msgspec.structs import replace

from hone.runtime.simple import Simple

UNCOMMITTED = "throws away changes that are not committed"
PUSHED = "rewrites or deletes what was pushed"
REWRITTEN = "rewrites a repository's history"

_VALUED = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--super-prefix"})
_FORCED = {"f", "d", "--force", "--force-with-lease", "--mirror", "--delete", "--prune"}
_FORCE = {"f", "--force"}
_WIDE = {".", "./", ":/", "*", ":/*"}


def judge_git(command: Simple) -> str:
    """Return what is dangerous about a git command, whatever options precede its verb."""
    if command.program != "git":
        return ""
    words = git_words(command.words)
    bare = replace(command, words=words)
    flags, rest = bare.flags, bare.operands[1:]
    if flags & {"--dry-run"} or (words[:1] in (("push",), ("clean",)) and "n" in flags):
        return ""
    match words[:1]:
        case ("push",) if flags & _FORCED or any(re.match(r"[+:]\S", word) for word in rest):
            return PUSHED
        case ("filter-branch" | "filter-repo" | "update-ref",):
            return REWRITTEN
        case ("reflog",) if rest[:1] in (("expire",), ("delete",)):
            return REWRITTEN
        case ("branch",) if "D" in flags or (flags & {"d", "--delete"} and flags & _FORCE):
            return "deletes a branch that may not be merged"
        case ("clean",) if flags & _FORCE:
            return "deletes files that git does not know"
        case ("rm",) if "r" in flags and "--cached" not in flags and _WIDE & {*rest}:
            return "deletes everything in a folder"
    return UNCOMMITTED if _discards(words[:1], flags, rest) else ""


def git_words(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a git command from its verb on."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _VALUED else 1
    return tuple(words[at:])


def _discards(verb: tuple[str, ...], flags: frozenset[str], rest: Sequence[str]) -> bool:
    match verb:
        case ("reset",):
            return "--hard" in flags
        case ("checkout",):
            return bool(flags & _FORCE or _WIDE & {*rest})
        case ("restore",):
            only_index = flags & {"S", "--staged"} and not flags & {"W", "--worktree"}
            return bool(_WIDE & {*rest}) and not only_index
        case ("switch",):
            return bool(flags & {*_FORCE, "--discard-changes"})
        case ("stash",):
            return rest[:1] in (("drop",), ("clear",))
        case ("worktree",):
            return rest[:1] == ("remove",) and bool(flags & _FORCE)
    return False
