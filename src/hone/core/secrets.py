"""Recognize and redact secrets in a text. Not a security boundary: a secret without a known form is missed.

A token is recognized by its own shape, any other value by the text around it. The work is linear in the
length of the text: each repetition in a pattern is bounded, comes last, or precedes something it cannot
match.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from math import log2

from msgspec import Struct

from hone.core.regex import regex

TOKENS = (
    ("Anthropic key", r"sk-ant-[\w-]{20,}"),
    ("OpenRouter key", r"sk-or-[\w-]{20,}"),
    ("OpenAI key", r"sk-(?:proj|svcacct|admin|None)-[\w-]{20,}"),
    ("Langfuse key", r"sk-lf-[\w-]{20,}"),
    ("API key", r"sk-[A-Za-z0-9]{32,}"),
    ("ElevenLabs key", r"sk_[0-9a-f]{48}"),
    ("Groq key", r"gsk_[A-Za-z0-9]{40,}"),
    ("xAI key", r"xai-[A-Za-z0-9]{40,}"),
    ("Perplexity key", r"pplx-[A-Za-z0-9]{32,}"),
    ("Cerebras key", r"csk-[a-z0-9]{40,}"),
    ("Together key", r"tgp_v1_[\w-]{40,}"),
    ("Replicate token", r"r8_[A-Za-z0-9]{37,}"),
    ("NVIDIA key", r"nvapi-[\w-]{60,}"),
    ("Tavily key", r"tvly-(?:dev-|prod-)?[A-Za-z0-9]{20,}"),
    ("Firecrawl key", r"fc-[0-9a-f]{32}"),
    ("LangSmith key", r"lsv2_[a-z]{2}_[0-9a-f]{32}_[0-9a-f]{10}"),
    ("Pinecone key", r"pcsk_\w{50,}"),
    ("Jina key", r"jina_[0-9a-f]{32}[\w-]{20,}"),
    ("Hugging Face token", r"(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    ("GitHub token", r"gh[opsur]_[A-Za-z0-9]{36,}"),
    ("GitHub token", r"github_pat_\w{22,}"),
    ("GitLab token", r"gl(?:agent|cbt|dt|ffct|ft|imt|oas|pat|ptt|rt|soat)-[\w.-]{20,}"),
    ("npm token", r"npm_[A-Za-z0-9]{36,}"),
    ("PyPI token", r"pypi-[\w-]{50,}"),
    ("RubyGems key", r"rubygems_[0-9a-f]{48}"),
    ("crates.io token", r"cio[A-Za-z0-9]{32}"),
    ("Docker token", r"dckr_[a-z]{3}_[\w-]{20,}"),
    ("Slack token", r"xox[a-z]-\d{6,}-[\w-]{10,}"),
    ("Slack token", r"xapp-\d-\w+-\d+-[0-9a-f]{20,}"),
    ("Stripe key", r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("webhook secret", r"whsec_[A-Za-z0-9+/=]{24,}"),
    ("Twilio key", r"SK[0-9a-f]{32}"),
    ("SendGrid key", r"SG\.[\w-]{16,32}\.[\w-]{32,64}"),
    ("Mailgun key", r"key-[0-9a-f]{32}"),
    ("Mailchimp key", r"[0-9a-f]{32}-us\d{1,2}"),
    ("AWS key", r"A(?:KIA|SIA|BIA|CCA)[A-Z2-7]{16}(?<!EXAMPLE)"),
    ("Alibaba key", r"LTAI[A-Za-z0-9]{16,20}"),
    ("Google key", r"AIza[\w-]{35}"),
    ("Google token", r"ya29\.[\w-]{30,}"),
    ("Google token", r"1//0[\w-]{40,}"),
    ("Google secret", r"GOCSPX-[\w-]{28}"),
    ("Azure secret", r"[A-Za-z0-9][\w~.-]{0,2}[78]Q~[\w~.-]{31,34}"),
    ("DigitalOcean token", r"do[opr]_v1_[0-9a-f]{64}"),
    ("Heroku key", r"HRKU-[\w-]{36,}"),
    ("Netlify token", r"nf[bcopu]_[A-Za-z0-9]{36,}"),
    ("Fly.io token", r"fm[12][ar]?_[A-Za-z0-9+/=_-]{60,}"),
    ("Supabase key", r"sb(?:p_[0-9a-f]{40}|_secret_[\w-]{20,})"),
    ("PlanetScale key", r"pscale_[a-z]{2,5}_[\w.=-]{32,}"),
    ("Databricks token", r"dapi[0-9a-f]{32}"),
    ("Vault token", r"hv[brs]\.[\w-]{24,}"),
    ("Terraform token", r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,}"),
    ("Pulumi token", r"pul-[0-9a-f]{40}"),
    ("Doppler token", r"dp\.[a-z]{2,5}\.[\w.-]{40,}"),
    ("1Password token", r"ops_eyJ[\w=-]{60,}"),
    ("Tailscale key", r"tskey-[a-z]+-[\w-]{16,}"),
    ("Shopify token", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    ("Square token", r"sq0[a-z]{3}-[\w-]{22,}"),
    ("Linear key", r"lin_(?:api|oauth)_[A-Za-z0-9]{40,}"),
    ("Notion token", r"(?:ntn_[A-Za-z0-9]{40,}|secret_[A-Za-z0-9]{43})"),
    ("Airtable token", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    ("Asana token", r"\d/\d{16}:[0-9a-f]{32}"),
    ("Atlassian token", r"AT(?:ATT3[\w=-]{60,}|BB[\w=]{24,})"),
    ("Figma token", r"figd_[\w-]{40,}"),
    ("Dropbox token", r"sl\.(?:u\.)?[\w-]{100,}"),
    ("Postman key", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    ("Grafana token", r"gl(?:sa_[A-Za-z0-9]{32}_[0-9a-f]{8}|c_[A-Za-z0-9+/=]{32,})"),
    ("New Relic key", r"NRAK-[A-Z0-9]{27}"),
    ("Sentry token", r"sntry[su]_[\w+/=.-]{40,}"),
    ("CircleCI token", r"CCIPAT_\w{40,}"),
    ("Buildkite token", r"bkua_[0-9a-f]{40}"),
    ("Telegram token", r"\d{8,10}:AA[\w-]{33}"),
    ("Discord token", r"[MNO][A-Za-z0-9]{23,27}\.[\w-]{6}\.[\w-]{27,}"),
    ("JWT", r"eyJ[\w-]{8,16000}\.[\w-]{6,}\.[\w-]{6,}(?:\.[\w-]{6,}){0,2}"),
    ("age key", r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    # "-----BEGIN PRIVATE", "RSA", "EC", "OPENSSH" and "ENCRYPTED" in base64, as in a kubeconfig
    ("private key", r"LS0tLS1CRUdJTiB(?:QUklW|SU0Eg|FQyBQ|PUEVO|FTkNS)[A-Za-z0-9+/=]{40,}"),
    ("password hash", r"\$(?:2[abxy]?|5|6|7|y|gy|argon2i?d?)\$[\w./$=,+-]{20,}"),
)
RUN = r"[\w.~+/=:$%,\\-]{20,}"
"""What every token is a part of: letters and signs without a space, and no token is shorter."""

_HEAD = r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----"
_FOOT = r"-----END (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----"
_BODY = r"(?:[^\[-]{40,}|\s{1,2}Proc-Type[^\[-]*)(?:-(?!----)[^\[-]*)*"
_CUT = r"(?:\s*(?:\\[nr]\s*)*[A-Za-z0-9+/=]{20,}(?![A-Za-z0-9+/=]))+"
_PUTTY = r"(?<=Private-Lines: )\d{1,4}(?:\r?\n[A-Za-z0-9+/=]{1,80}(?![^\r\n]))+"
BLOCK = rf"{_HEAD}(?:{_BODY}{_FOOT}|{_CUT})|{_PUTTY}"
"""A private key in lines, also one that was cut before its end."""

Judge = Callable[[re.Match[str], str], bool]


class SecretSpan(Struct, frozen=True):
    """Where a value is a secret: what follows one of the anchors, which are in lower case. The last group of
    the pattern is the value, and the judge looks at it once more."""

    kind: str
    anchors: tuple[str, ...]
    pattern: str
    judge: Judge


def redact(text: str) -> str:
    """The text with `[redacted: KIND]` in place of each secret that was recognised. Raises nothing."""
    if "PRIVATE KEY-----" in text or "Private-Lines: " in text or "KEY BLOCK-----" in text:
        text = _without_feet(re.sub(BLOCK, _mark("private key"), text, flags=re.ASCII))
    whole = re.sub(RUN, lambda run: _tokens().sub(_named, run[0]), text, flags=re.ASCII)
    return _without_values(whole)


def mask_password(url: str) -> str:
    """Return the address of a database or service without the password in it."""
    bare = re.sub(r"(://[^:@/]*):[^@/]*@", r"\1:…@", url)
    return re.sub(r"(password\s*=\s*)(?:'(?:[^'\\]|\\.)*'|[^\s&]+)", r"\1…", bare)


def _mark(kind: str) -> str:
    return f"[redacted: {kind}]"


def _named(token: re.Match[str]) -> str:
    return _mark(TOKENS[(token.lastindex or 1) - 1][0])


@cache
def _tokens() -> re.Pattern[str]:
    # A letter before a token belongs to no word if it ends an escape, or if the token begins with a sign.
    left = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[0-9A-F]{2}))"
    # The empty group tells which one it was. It stands last, so that most are refused by their first letter.
    tokens = "|".join(f"{pattern}()" for _, pattern in TOKENS)
    return _compiled(rf"(?:{left}|(?=\$))(?:{tokens})(?![A-Za-z0-9])")


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


def _without_feet(text: str) -> str:
    """A key whose beginning was left out still has lines of base64 above its foot."""
    kept, done = [], 0
    for foot in re.finditer(_FOOT, text):
        start = _body(text, done, foot.start())
        if foot.start() - start >= 60:
            kept += [text[done:start], _mark("private key")]
            done = foot.end()
    return "".join([*kept, text[done:]])


def _body(text: str, floor: int, end: int) -> int:
    """Where the lines of base64 that reach up to `end` begin. All of them are long but the last."""
    at, shortest = end, 1
    while at > floor:
        above = max(floor, at - 200)
        start = max(text.rfind("\n", above, at - 1) + 1, above)
        line = text[start:at].strip()
        if len(line) < shortest or not re.fullmatch(r"[A-Za-z0-9+/=]+", line):
            break
        at, shortest = start, 40
    return at


def _without_values(text: str) -> str:
    kept, done = [], 0
    for start, end, kind in sorted(_values(text)):
        if start >= done:
            kept += [text[done:start], _mark(kind)]
        done = max(done, end)
    return "".join([*kept, text[done:]])


def _values(text: str) -> Iterator[tuple[int, int, str]]:
    """Where each secret value begins and ends, and its kind. One may lie in another."""
    for at, place in _anchored(text):
        match = _compiled(place.pattern).match(text, at)
        if match:
            start, end = match.span(match.lastindex or 0)
            if not _BLANK.match(text, start) and place.judge(match, text[start:end][:256]):
                yield start, end, place.kind


def _anchored(text: str) -> Iterator[tuple[int, SecretSpan]]:
    # One byte per letter, so that positions in the text and in the bytes are the same.
    lowered = text.encode("ascii", "replace").lower()
    for anchor, place in _anchors():
        at = lowered.find(anchor)
        while at >= 0:
            at += len(anchor)
            yield at, place
            at = lowered.find(anchor, at)


@cache
def _anchors() -> Sequence[tuple[bytes, SecretSpan]]:
    return [(anchor.encode(), place) for place in PLACES for anchor in place.anchors]


_BLANK = regex(
    r"[<^\[({]|\$[\w{(]|%[s(]|\*{3}|x{4}|\.{3}|arn:|change-?me|dummy|example|insert|placeholder|redacted|replace|your",
    re.IGNORECASE,
)
_INSERTED = regex(r"\$[{(]|\{[\w.]*\}|%\(|\[redacted")
_WORD = r"[A-Z]*(?![A-Z])[a-z]*\d*(?:[A-Z][a-z]+\d*)*"
_WORDS = regex(rf"(?:{_WORD}[_.:/@+-])*{_WORD}={{0,2}}")
_TELLING = regex(
    r"(?:password|passwd|passphrase|pwd|secret|credential|(?<!page)(?<!page_)(?<!next)(?<!next_)(?<!tion_)(?<!public)(?<!publickey)token"
    r"|(?:access|account|api|auth|encryption|private|secret|signing)[_-]?key)$",
    re.IGNORECASE,
)
_HARMLESS = regex(
    r"(?:arn|colou?r|count|digest|endpoint|field|file|hash|header|id|length|limit|name|path|policy|prefix|ref|sha\d*"
    r"|size|type|ur[il]|version)s?$",
    re.IGNORECASE,
)


def _any(_: re.Match[str], value: str) -> bool:
    return not _INSERTED.search(value)


def _odd(match: re.Match[str], value: str) -> bool:
    """No words, and no name of something."""
    return _any(match, value) and not _WORDS.fullmatch(value)


def _random(match: re.Match[str], value: str) -> bool:
    if not _odd(match, value) or "://" in value or not any(map(str.isalpha, value)):
        return False
    shares = [count / len(value) for count in Counter(value).values()]
    return -sum(share * log2(share) for share in shares) >= 3


def _assigned(match: re.Match[str], value: str) -> bool:
    """A random value under a name that tells. In quotes, a space after it makes it the first word of many."""
    name = match.string[max(0, match.pos - 20) : match.pos]
    after = match.string[match.end() : match.end() + 1]
    if not _TELLING.search(name) or _HARMLESS.search(match["suffix"]) or not _random(match, value):
        return False
    return after != " " if match["bare"] is None else _no_code(value, after)


def _no_code(value: str, after: str) -> bool:
    """Without quotes, what is called, indexed or reads like a name is no secret."""
    if re.fullmatch(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", value):
        return False
    mixed = re.search(r"\d.*[A-Za-z]", value) and sum(map(str.isdigit, value)) > 1
    return bool(mixed) and after not in {"(", "[", "{"}


_QUOTED = r"b?\"([^\"\s\\]{8,})|b?'([^'\s\\]{8,})|`([^`\s\\]{8,})"
_BARE = r"(?P<bare>[\w+/.~!@%^&*?-]{8,}={0,2})"
_TYPED = r":\s{0,2}[A-Za-z][\w.\[\]|]{0,30}\s{0,2}="
_ASSIGNMENT = (
    r"(?P<suffix>(?!i[sz])[\w-]{0,24})(?:[\"']\]?)?\s{0,4}"
    rf"(?:=>|:=|{_TYPED}|(?!{_TYPED}):(?!:)|=(?!=))\s{{0,4}}(?:{_QUOTED}|{_BARE})"
)
_NAMES = ("password", "passwd", "passphrase", "pwd", "secret", "token", "credential", "key")
_HEADER = (
    r"(?i:(?<![a-z]authorization))[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?:[A-Za-z]{3,10}\s{1,4})?([\w.~+/=-]{8,})"
)
_NETRC = r"\s{1,8}\S{1,200}\s{1,8}login\s{1,8}\S{1,200}\s{1,8}password\s{1,8}(\S+)"
_SIGNED = ("?sig=", "&sig=", "-signature=", "-security-token=")
_CONNECTION = (";password=", ";pwd=", "; password=", "; pwd=")
PLACES = (
    SecretSpan("URL password", ("://",), r"[^\s/:@\"'<>]{0,200}:([^\s/?#\"'<>]{1,400})@(?=[\w.\[-])", _any),
    SecretSpan("credentials", ("authorization",), _HEADER, _odd),
    SecretSpan("credentials", ("bearer",), r"\s{1,4}([\w.~+/=-]{16,})", _random),
    SecretSpan("password", (" -u ", " --user ", " --user="), r"[\"']?[\w.@-]{1,100}:([^\s\"'@:]{6,})", _odd),
    SecretSpan("password", _CONNECTION, r"([^;\"'\s()]+)(?![^;\"'\s)])", _any),
    SecretSpan("netrc password", ("machine",), _NETRC, _any),
    SecretSpan("signature", _SIGNED, r"([\w%+/=.~-]{30,})", _any),
    SecretSpan("webhook", ("hooks.slack.com/",), r"[a-z]+/([\w/]{20,})", _any),
    SecretSpan("webhook", ("/api/webhooks/",), r"\d+/([\w-]{40,})", _any),
    SecretSpan(
        "assigned secret", ("<password>", "<secret>", "<token>", "<apikey>"), r"([^<>\s]{8,})<", _random
    ),
    SecretSpan("assigned secret", _NAMES, _ASSIGNMENT, _assigned),
)
