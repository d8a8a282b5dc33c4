"""Tell which models cannot see images. Only known ones are listed; settings override the list."""

import re

from hone.core.regex import regex

_SEES = regex(r"vision|multimodal|omni|(?:^|[-_.:\d])vl(?:$|[-_.:\d])", re.IGNORECASE)
_BLIND = regex(
    r"deepseek-(?:chat|reasoner|coder|r1|v[23])"
    r"|gpt-3\.5|gpt-oss|o1-(?:mini|preview)|o3-mini"
    r"|llama-?2|llama-?3(?:\.[13])?(?:$|[-:])|llama-?3\.2(?:$|[-:][13]b)|codellama|code-?llama"
    r"|qwen(?:2|2\.5|3)?-coder|qwen-?2(?:\.5)?(?:$|[-:])|qwen-?3(?:$|[-:])"
    r"|mixtral|mistral-7b|codestral|devstral-small-2505|phi-?[23](?:$|[-:.])|starcoder|smollm2"
    r"|kimi-k2(?:$|[-:])|glm-4\.[56](?:$|[-:])|command-r",
    re.IGNORECASE,
)
"""Model families as of November 2026, by the start of a model's name."""


def is_blind(model: str) -> bool:
    """Tell whether a model, named as provider/name, is known not to see images."""
    name = model.rpartition("/")[2]
    return bool(_BLIND.match(name)) and not _SEES.search(name)
