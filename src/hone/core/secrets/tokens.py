"""Recognize tokens by their own shape: the provider's prefix, the length, the letters.

The work is linear in the length of the text: a repetition in a pattern is bounded, comes last, or precedes
something it cannot match.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate
from string import ascii_letters, digits

from hone.core.regex import regex
from hone.core.secrets.marks import Span, mark, marked
from hone.core.secrets.scan import stretches, table_of

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
    ("Slack token", r"xox[a-z](?:\.xox[a-z])?-(?:\d[\w%-]{20,}|[\w%-]{60,})"),
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
    ("Resend key", r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}"),
    ("Brevo key", r"xkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    ("Mapbox token", r"sk\.eyJ[\w-]{40,}\.[\w-]{20,}"),
    ("PostHog key", r"phx_[A-Za-z0-9]{40,}"),
    ("Neon key", r"napi_[a-z0-9]{60,}"),
    ("Render key", r"rnd_[A-Za-z0-9]{28,}"),
    ("Fireworks key", r"(?<![-_])fw_[A-Za-z0-9]{22,}"),
    ("LlamaCloud key", r"llx-[A-Za-z0-9]{40,}"),
    ("E2B key", r"e2b_[0-9a-f]{40}"),
    ("HubSpot token", r"pat-[a-z]{2}\d-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    ("SonarQube token", r"sq[aup]_[0-9a-f]{40}"),
    ("Artifactory key", r"AKCp[A-Za-z0-9]{69,}"),
    ("Brave key", r"BSA[\w-]{28}"),
    ("Contentful token", r"CFPAT-[\w-]{43}"),
    ("extended private key", r"[tuvxyz]prv[1-9A-HJ-NP-Za-km-z]{107}"),
    ("age key", r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    # "-----BEGIN PRIVATE", "RSA", "EC", "OPENSSH" and "ENCRYPTED" in base64, as in a kubeconfig
    ("private key", r"LS0tLS1CRUdJTiB(?:QUklW|SU0Eg|FQyBQ|PUEVO|FTkNS)[A-Za-z0-9+/=]{40,}"),
    ("password hash", r"\$(?:2[abxy]?|5|6|7|y|gy|argon2i?d?)\$[\w./$=,+-]{20,}"),
)
_SIGNS = ".~+/=:$%,\\-"
SHORTEST = 20
RUN = rf"[\w{re.escape(_SIGNS)}]{{{SHORTEST},}}"
"""Every token is part of such a run: letters and signs without a space, at least this long."""
_IN_RUN = table_of(ascii_letters + digits + "_" + _SIGNS)


JWT = "JWT"
_RUN = regex(RUN, re.ASCII)
_LETTERS = regex(r"[\w-]*", re.ASCII)
_ESCAPED = regex(r".?\\[nrt]|%[0-9A-F]{2}", re.ASCII | re.DOTALL)


def without_tokens(text: str) -> str:
    if next(stretches(text, _IN_RUN, SHORTEST), None) is None:
        return text
    return _RUN.sub(_cleared, text)


def _cleared(run: re.Match[str]) -> str:
    whole = run[0]
    if "eyJ" in whole:
        whole = marked(whole, _jwts(whole))
    return _tokens().sub(_named, whole)


def _named(token: re.Match[str]) -> str:
    return mark(TOKENS[(token.lastindex or 1) - 1][0])


@cache
def _tokens() -> re.Pattern[str]:
    # A letter before a token is no part of a word if it ends an escape, or if the token begins with a sign.
    left = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[0-9A-F]{2}))"
    # The empty group tells which one matched. It stands last, so that most are rejected by their first
    # letter.
    tokens = "|".join(f"{pattern}()" for _, pattern in TOKENS)
    return re.compile(rf"(?:{left}|(?=\$))(?:{tokens})(?![A-Za-z0-9])", re.ASCII)


def _jwts(run: str) -> Iterator[Span]:
    """Yield JWTs. They have three to five parts, the first of any length. Code counts the parts between the
    dots: a pattern would start over wherever a JWT could begin."""
    parts = run.split(".")
    starts = list(accumulate((len(part) + 1 for part in parts), initial=0))
    floor = 0
    for at in range(len(parts) - 2):
        header = _header(parts[at], max(0, floor - starts[at]))
        if header is None:
            continue
        ends = [
            starts[at + 1 + number] + length for number, length in enumerate(_lengths(parts[at + 1 : at + 5]))
        ]
        if len(ends) >= 2:
            floor = ends[-1]
            yield starts[at] + header, floor, JWT


def _header(part: str, floor: int) -> int | None:
    """Return where a header begins that reaches up to the end of the part."""
    tail = _LETTERS.match(part[::-1])
    start = max(floor, len(part) - (tail.end() if tail else 0))
    at = part.find("eyJ", start)
    while 0 <= at <= len(part) - 11:
        if at == 0 or not part[at - 1].isalnum() or _ESCAPED.fullmatch(part, max(0, at - 3), at):
            return at
        at = part.find("eyJ", at + 1)
    return None


def _lengths(parts: Sequence[str]) -> Iterator[int]:
    """Yield how much of each part belongs to a JWT, up to the first part that ends it."""
    for part in parts:
        leading = _LETTERS.match(part)
        length = leading.end() if leading else 0
        if length >= 6:
            yield length
        if length < max(6, len(part)):
            return
