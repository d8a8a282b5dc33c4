"""Screen a text before it is stored: its canonical form, the secrets in it, and anything suspicious.

Callers must refuse secrets. A flag is advice: a flagged change is pending, unless the owner made it.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from functools import cache, lru_cache

from msgspec import Struct

from hone.core.regex import find_needles, fold, has_any, regex
from hone.core.secrets import redact
from hone.core.secrets.scan import find_common
from hone.core.visible import bare, visible

HIDDEN = "it has hidden characters"
FORGED = "it imitates the marks between messages"
ORDER = "it gives orders to the model"
SECRECY = "it wants something kept from the user"
LEAK = "it sends private things away"
FETCHED = "it runs what it fetches or decodes"
UNGUARDED = "it switches safeguards off"
ENCODED = "a long stretch of it is encoded"
LETTERS = "it mixes letters that look alike"

_PATTERNS = {
    FORGED: (
        r"<\|[\w ]{2,30}\|>|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>",
        r"^[^\S\n]*</?(?:system|assistant|developer|human|user|hone[-_](?:note|memory)|(?:tool|function)_(?:call|result)s?)>",
        r"^[^\S\n]*#{2,}\s*(?:system|instruction|human|assistant)s?(?: prompt| message)?:",
        r"^\W{0,3}(?:system|assistant|developer)(?: prompt| message)?\W{0,3}:\W{0,3}"
        r"(?:you|ignore|disregard|forget|do not|don't|never|always|from now|new|follow|obey|execute)\b",
        r"\b(?:begin|start|end) of (?:system|developer) (?:prompt|message|instructions)",
    ),
    ORDER: (
        r"\b(?:ignor\w+|disregard\w*|forget|override|overrule|bypass)\b[^.\n]{0,20}"
        r"\b(?:previous|prior|above|earlier|preceding|initial|original|your|all(?: of)? (?:the|your|other))\b"
        r"[^.\n]{0,20}\b(?:instruct\w+|rules|prompts?|directives|guidelines|orders|constraints|training)\b",
        r"\bforget (?:everything|all)\b[^.\n]{0,20}\b(?:told|said|above|before|learned|know)\b",
        r"\byou are (?:now|no longer)\b (?:an?|the|in|bound|restricted|dan|free)\b",
        r"\bfrom now on,? you (?:are|will|must|shall|have to|should)\b",
        r"\b(?:act|behave|respond|answer|pretend)\b[^.\n]{0,12}\b(?:as|to be|you are)\b[^.\n]{0,20}"
        r"\b(?:unrestricted|uncensored|unfiltered|jailbroken|dan|no (?:rules|restrictions|limits))\b",
        r"\b(?:new|updated|real|actual|hidden|secret) (?:system )?instructions?(?: follow)?\s?:",
        r"\b(?:reveal|print|repeat|output|leak|show)\b[^.\n]{0,15}"
        r"\byour (?:system|hidden|initial) (?:prompt|instructions)",
        r"\bignorier\w* (?:alle|die|deine|sämtliche)?\s?(?:vorherigen|bisherigen|obigen|früheren)? ?"
        r"(?:anweisungen|regeln|vorgaben|instruktionen)",
        r"\b(?:vergiss|missachte) (?:alle|deine)\b[^.\n]{0,20}\b(?:anweisungen|regeln|vorgaben)",
        r"\bdu bist (?:ab jetzt|ab sofort|jetzt|nun) (?:ein|der|die|kein)",
        r"\b(?:ignore[zr]?|oublie[zr]?) (?:toutes )?(?:les|tes|vos|ces) (?:instructions|consignes|règles)",
        r"\btu es (?:désormais|maintenant) (?:un|une|le|la)\b",
        r"\b(?:ignora|ignore|olvida|olvide) (?:todas )?(?:las|tus|sus) (?:instrucciones|reglas|órdenes)",
        r"\b(?:ignora|dimentica) (?:tutte )?(?:le|le tue|queste) (?:istruzioni|regole)",
        r"\b(?:ignore|esqueça|desconsidere) (?:todas )?(?:as|suas|as suas) (?:instruções|regras)",
        r"\bnegeer (?:alle )?(?:vorige|eerdere|bovenstaande|je) (?:instructies|regels)",
        r"(?:игнорируй|забудь|проигнорируй)(?:те)? (?:все |свои |эти )*(?:предыдущие |прежние |прошлые )?"
        r"(?:инструкции|указания|правила)",
        r"(?:忽略|无视|無視|忘记|忘掉)[^。\n]{0,8}(?:指令|指示|提示词|规则|規則|要求|命令)",
        r"(?:指示|命令|ルール|プロンプト)を?(?:すべて|全て|全部)?(?:無視|忘れ)",
        r"(?:지시|명령|지침|규칙)[^.\n]{0,6}(?:무시|잊)",
    ),
    SECRECY: (
        r"\b(?:do not|don't|never|without)\b[^.\n]{0,10}"
        r"\b(?:tell|inform|alert|notify|warn|mention|reveal|show|ask)(?:ing)?\b[^.\n]{0,15}"
        r"\b(?:the|your) (?:user|owner|human|operator)s?\b(?! interface)",
        r"\b(?:hide|conceal|secret|hidden)\b[^.\n]{0,15}\bfrom (?:the|your) (?:user|owner|human|operator)\b",
    ),
    LEAK: (
        r"\b(?:send|post|upload|forward|exfiltrat\w+|leak|transmit|e-?mail|copy|submit|report|append|sync)\b"
        r"[^.\n]{0,60}\b(?:api keys?|keys|tokens?|secrets?|passwords?|credentials?|environment|env|ssh|id_rsa"
        r"|cookies?|conversations?|history|memory|wallet|private)\b[^\n]{0,60}"
        r"(?:https?://|ftp://|\b[\w.+-]+@[\w-]+\.\w|\b\d{1,3}(?:\.\d{1,3}){3}\b)",
        r"https?://[^\s)?&]{0,500}[?&][^\s)]{0,500}?(?:\$\(|\$\{?\w*(?:key|token|secret|password|passwd))",
        r"\bcurl\b[^\n]{0,200}(?:-d|--data\S*|-F|-T|--upload-file)\s?[\"']?(?:@?~?/?\S*(?:\.ssh|\.env\b|\.aws|id_rsa|shadow)|\$\()",
        r"\b(?:cat|tar|base64)\b[^\n|]{0,80}(?:\.ssh|\.env\b|\.aws|id_rsa|/etc/shadow)[^\n|]{0,80}\|\s?(?:curl|nc|wget)\b",
    ),
    FETCHED: (
        r"\b(?:curl|wget|fetch|iwr|invoke-webrequest)\b[^\n|]{0,300}\|\s?(?:sudo )?(?:env )?"
        r"(?:(?:ba|z|da|k)?sh|python3?|perl|ruby|node|iex)\b",
        r"\b(?:(?:ba|z)?sh|source|eval|iex)\b[^\n]{0,12}(?:<\(|\$\(|`|\()\s?(?:curl|wget|iwr)\b",
        r"\bbase64\b[^\n|]{0,40}(?:-d|--decode|-D)\b[^\n|]{0,40}\|\s?(?:sudo )?(?:(?:ba|z)?sh|python3?)\b",
        r"\bdecode\b[^.\n]{0,40}\b(?:and|then)\b[^.\n]{0,10}\b(?:run|execute|follow|obey)\b",
        r"/dev/tcp/|\bnc\b[^\n]{0,30}\s-e\s|>>?\s?~?\S*\.ssh/authorized_keys",
    ),
    UNGUARDED: (
        r"\b(?:disable|turn off|switch off|bypass|skip|circumvent)\b[^.\n]{0,15}\b(?:sandbox|guardrails?"
        r"|safety (?:checks?|filters?|rules)|approvals?|permission (?:prompts?|checks?)|content filters?)\b",
        r"\b(?:always|automatically) (?:approve|allow|accept|say yes to)\b[^.\n]{0,15}\b(?:all|every|any)\b",
    ),
}
_BLOB = regex(r"[A-Za-z0-9+/_-]{120,}={0,2}|(?:\\x[0-9a-fA-F]{2}){20,}|(?:%[0-9a-fA-F]{2}){20,}")
_SHORTEST = 60
"""The fewest letters of such a run."""
_CYRILLIC, _LATIN = "аАВсСеЕНһіІјЈкКМоОрРѕЅтТуУхХԁԛԝ", "aABcCeEHhiIjJkKMoOpPsStTyYxXdqw"
_GREEK, _LIKE_GREEK = "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧονιρ", "ABEZHIKMNOPTYXovip"
_ALIKE = {ord(one): other for one, other in zip(_CYRILLIC + _GREEK, _LATIN + _LIKE_GREEK, strict=True)}
_WORD = regex(r"[^\W\d_]{2,}")
_PLAIN = regex(r"[A-Za-z\u00c0-\u024f]")
_FANCY = regex("[\U0001d400-\U0001d7ff]{3,}")


_NEAR = 6
"""Lines around a change that can contribute to a flag. No pattern reaches further: whatever may match a line
feed matches at most three letters, or blanks. Blank lines do not count."""
_RECENT = 16
_quiet: dict[str, None] = {}
"""The texts screened last that have no flags."""


class Screened(Struct, frozen=True):
    """`text` hides nothing; `secrets` are the recognized kinds; each of `flags` completes "…, so it
    waits"."""

    text: str
    secrets: tuple[str, ...]
    flags: tuple[str, ...]


@lru_cache(maxsize=16)  # the result of one change is the start of the next
def screen(text: str) -> Screened:
    shown, said = _forms(text)
    return Screened(shown, tuple(find_secrets(text)), tuple(dict.fromkeys(_flags(text, shown, said))))


def find_secrets(text: str) -> Collection[str]:
    """Return the kinds of secrets in a text."""
    shown, said = _forms(text)
    return dict.fromkeys([*_secrets(shown), *(_secrets(said) if said != shown else ())])


def find_new(before: str, after: str) -> tuple[Sequence[str], Sequence[str]]:
    """Return the kinds of secrets and the flags that a change added to a text. Secrets may have any length,
    so the whole text is searched for them. Flags are sought only around the change, unless there were some
    before."""
    secrets = find_secrets(after)
    if secrets:
        known = find_secrets(before)
        secrets = [each for each in secrets if each not in known]
    if _is_quiet(before) and _stays_quiet(before, after):
        return tuple(secrets), ()
    was, now = screen(before), screen(after)
    return tuple(secrets), tuple(each for each in now.flags if each not in was.flags)


def _is_quiet(text: str) -> bool:
    """Tell whether a text has no flags."""
    if text in _quiet or any(_is_near(each, text) and _stays_quiet(each, text) for each in [*_quiet][::-1]):
        return True
    if screen(text).flags:
        return False
    _keep_quiet(text)
    return True


def _is_near(one: str, other: str) -> bool:
    """Tell whether one text may be the other with a few lines added: another process has written it."""
    common = min(len(one), len(other)) // 2
    return common > 0 and one[:common] == other[:common] and abs(len(one) - len(other)) < common


def _stays_quiet(before: str, after: str) -> bool:
    """Tell whether a text without flags still has none after a change. Only the text around the change can
    have gained one."""
    near = _around(before, after)
    if any(_flags(near, *_forms(near))):
        return False
    _keep_quiet(after)
    return True


def _keep_quiet(text: str) -> None:
    while len(_quiet) >= _RECENT:
        _quiet.pop(next(iter(_quiet)), None)
    _quiet[text] = None


def _around(before: str, after: str) -> str:
    """Return the changed lines of a text with the nearby lines on each side."""
    head, tail = find_common(before, after)
    start, end = after.rfind("\n", 0, head) + 1, len(after) - tail
    above = _last_lines(after[:start], _NEAR)
    below = _last_lines(after[end:][::-1], _NEAR + 1)[::-1]  # the first one is only part of a line
    return f"{above}{after[start:end]}{below}"


def _last_lines(text: str, count: int) -> str:
    """Return the end of a text, from the beginning of this many nonempty lines."""
    at = len(text)
    while at > 0 and count > 0:
        start = text.rfind("\n", 0, at - 1) + 1
        count -= bool(text[start:at].strip())
        at = start
    return text[at:]


def _forms(text: str) -> tuple[str, str]:
    """Return a text with its hidden letters shown, and without them."""
    shown = visible(text)
    return shown, text if shown == text else bare(text)


def _secrets(text: str) -> list[str]:
    redacted = redact(text)
    return re.findall(r"\[redacted: ([^\]\n]{1,40})\]", redacted) if redacted != text else []


def _flags(text: str, shown: str, said: str) -> Iterator[str]:
    if shown != text.replace("\r\n", "\n"):
        yield HIDDEN
    if not said.isascii() and (any(map(_is_mixed, _WORD.findall(said))) or _FANCY.search(said)):
        yield LETTERS
    plain = unicodedata.normalize("NFKC", said)
    # Once unchanged, for words in other scripts, and once with each look-alike as what it looks like.
    for form in dict.fromkeys((plain, plain if plain.isascii() else plain.translate(_ALIKE))):
        folded = fold(form)
        for flag, pattern, needles in _compiled():
            if has_any(folded, needles) and pattern.search(form):
                yield flag
    if max(map(len, said.split()), default=0) >= _SHORTEST and _BLOB.search(said):
        yield ENCODED


@cache
def _compiled() -> Sequence[tuple[str, re.Pattern[str], Sequence[str]]]:
    """Return each flag with its expression, and what a text with a match contains."""
    found = []
    for flag, patterns in _PATTERNS.items():
        whole, flags = "|".join(f"(?:{each})" for each in patterns), re.IGNORECASE | re.MULTILINE
        found.append((flag, re.compile(whole, flags), find_needles(whole, flags)))
    return found


def _is_mixed(word: str) -> bool:
    """Tell whether Latin letters have look-alikes among them. A foreign word may have an ending in another
    script, and a scientific sign stands first: neither has a Latin letter on both sides."""
    others = [at for at, letter in enumerate(word) if not _PLAIN.match(letter)]
    if not others or len(others) == len(word) or not all(ord(word[at]) in _ALIKE for at in others):
        return False
    return len(word) > 2 and any(_PLAIN.match(letter) for letter in word[others[0] + 1 :])
