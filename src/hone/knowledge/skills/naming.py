"""Check the name of a skill: it must describe a recurring kind of task, not the work of one day."""

from functools import cache
from pathlib import Path

from hone.core.errors import Refused
from hone.core.regex import regex

LONGEST = 64
SHAPE = regex(r"[a-z0-9]+(?:-[a-z0-9]+)*")
ADVICE = "Name the class of task instead, such as release-notes, python-packaging or slow-queries"

_STANDARDS = "aes|base|din|en|http|ieee|iso|rfc|sha|utf"
_MONTHS = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|"
    "oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
)
_ERRORS = (
    "assertion|attribute|connection|import|index|io|key|memory|module-not-found|name|null-pointer|os|"
    "out-of-memory|permission|reference|runtime|segmentation|stack-overflow|syntax|timeout|type|unicode|value"
)
_TICKET = regex(
    r"(?:^|-)(?:pr|prs|mr|pull|issue|ticket|bug|gh|jira|story|task|case|incident|cve)s?-?\d+(?:-|$)"
    rf"|^(?!(?:{_STANDARDS})-)[a-z]{{2,10}}-\d{{3,}}(?:-|$)"
    rf"|^\d{{3,}}(?:-|$)|(?<!\biso-)(?<!\brfc-)(?<!\bdin-)(?:^|-)\d{{5,}}(?:-|$)"
)
_DATE = regex(
    rf"(?:^|-)(?:(?:19|20)\d\d|(?:19|20)\d{{6}}|(?:{_MONTHS})-?\d{{1,4}}|\d{{1,2}}-(?:{_MONTHS})|q[1-4]-?\d\d"
    r"|(?:week|sprint)-?\d+)(?:-|$)"
)
_HASH = regex(r"(?:^|-)(?=[a-f0-9]*\d[a-f0-9]*)(?=\d*[a-f])[a-f0-9]{7,}(?:-|$)")
_TANGLE = regex(
    r"(?:^|-)(?=[a-z0-9]{4,}(?:-|$))(?:[a-z]+\d+){2,}[a-z]*(?:-|$)|(?:^|-)(?:\d+[a-z]+){2,}\d*(?:-|$)"
)
_CODENAME = regex(r"(?:codenamed?|operation)-.+|project-[a-z0-9]")
_ERROR = regex(
    rf"(?:^|-)(?:{_ERRORS})-(?:error|exception|fault)s?(?:$|-(?:in|on|when|after|from|with)-)"
    r"|(?:^|-)(?!terror)[a-z]{2,}(?:error|exception)(?:-|$)"
    r"|(?:^|-)(?:traceback|stacktrace|segfault|errno|enoent|eacces|eperm|econnrefused|econnreset|etimedout|sigsegv)"
    r"(?:-|$)"
    r"|(?:^|-)(?:cannot|cant|could-not|couldnt|failed-to|unable-to|no-such|no-module|is-not-defined|undefined-is"
    r"|permission-denied|connection-refused|not-found|does-not-work|doesnt-work|not-working|unexpected-token"
    r"|exit-code|exit-status)(?:-|$)"
    r"|(?:^|-)(?:error|status|http|code)-?[45]\d\d(?:-|$)|(?:^|-)[45]\d\d-(?:error|status|response)s?(?:-|$)"
)
_ONE_DAY = regex(
    r"(?:fix|fixed|hotfix|quickfix|bugfix|debug|try|trying|tried|retry-the|investigate|look-into|check-why|help-me"
    r"|todo|wip|temp|tmp|temporary|adhoc|ad-hoc|one-off|oneoff|urgent|my)-.+"
    r"|.+-(?:wip|temp|tmp|todo|fix|hotfix|draft|copy|final|new|old|v\d+|attempt|again|asap)"
    r"|(?:.+-)?(?:today|tonight|tomorrow|yesterday|this-week|last-week|for-now|right-now)(?:-.+)?"
    r"|(?:test|tests|demo|example|sample|foo|bar|baz|asdf|untitled|skill|skills|new-skill|misc|stuff|things|notes"
    r"|general|other|fix|debug|wip|temp|tmp|todo|a|x)(?:-?\d+)?"
)
_FRAME = regex(
    r"^(?:how-to-use|how-to|using|use|working-with|learn|learning|intro-to|about)-"
    r"|-(?:usage|use|guide|tips|tricks|basics|help|skills?|tools?|library|lib|notes|howto|tutorial|stuff|commands)$"
)


def check_name(name: str) -> str:
    """Return the name if its characters are valid. Raises Refused."""
    if len(name) > LONGEST or SHAPE.fullmatch(name) is None:
        raise Refused(
            f"{_shown(name)} cannot be the name of a skill: use 1 to {LONGEST} of a-z, 0-9 and single "
            "hyphens between them, as in release-notes."
        )
    return name


def advise(name: str) -> str:
    """Return advice about a name that would be hard to find again; empty if it is fine."""
    flaw = _flaw(name)
    return f"{name} may not be found again: {flaw}. {ADVICE}." if flaw else ""


def check_class(name: str) -> str:
    """Return the name if it is valid and describes a class of task. Raises Refused."""
    if flaw := _flaw(check_name(name)):
        raise Refused(f"A skill named {name} would not be found again: {flaw}. {ADVICE}.")
    return name


def _flaw(name: str) -> str:
    if _ERROR.search(name):
        return "it repeats an error, and the next one will read differently"
    if _DATE.search(name):
        return "it carries a date"
    if _TICKET.search(name):
        return "it names one ticket, not a kind of work"
    if _ONE_DAY.fullmatch(name):
        return "it names one day's task"
    if _HASH.search(name) or _TANGLE.search(name) or _CODENAME.fullmatch(name):
        return "it is a code that only insiders read"
    if name in _libraries() or _FRAME.sub("", name) in _libraries():
        return "a library or tool alone does not say what is done with it"
    return ""


@cache
def _libraries() -> frozenset[str]:
    """Return well-known libraries, tools and languages."""
    return frozenset(Path(__file__).with_name("libraries.txt").read_text(encoding="utf-8").split())


def _shown(name: str) -> str:
    return repr(name if len(name) <= 80 else f"{name[:79]}…")
