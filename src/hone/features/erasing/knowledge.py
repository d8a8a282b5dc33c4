"""Rewrite what is known without the erased words: journal entries, memory items and files of skills."""

import json

from hone.core.erasure import Scrubber, is_blank
from hone.core.holding import ERASED
from hone.core.ledger import SKILL, Target
from hone.core.messages import canonical
from hone.knowledge import journal, places
from hone.knowledge.validity import read
from hone.stores.redacting import Rewrite

BLANK = f"{ERASED}\n".encode()


def make_rewrite(scrub: Scrubber) -> Rewrite:
    """Return the function that rewrites contents of the ledger."""

    def rewrite(target: str, path: str, body: bytes, whole: bool) -> bytes:
        if places.is_item(Target(target)):
            return _rewrite_item(body, scrub, whole=whole)
        if target.startswith(SKILL) or places.is_copy(Target(target)) or path.startswith("@"):
            return BLANK if whole else scrub.data(body)
        return b"" if whole else _rewrite_journal(body, scrub)

    return rewrite


def _rewrite_journal(body: bytes, scrub: Scrubber) -> bytes:
    """Remove entries that are now empty; the owner's other lines keep their place."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return scrub.data(body)
    return "".join(_rewrite_block(each, scrub) for each in journal.blocks(text)).encode()


def _rewrite_block(block: journal.Block, scrub: Scrubber) -> str:
    made = scrub.text(block.raw)
    if made == block.raw or block.entry is None:
        return made
    return "" if is_blank(read(scrub.text(block.entry)).wording) else made


def _rewrite_item(body: bytes, scrub: Scrubber, *, whole: bool) -> bytes:
    try:
        value = json.loads(body)
    except ValueError:
        return scrub.data(body)
    if whole:
        value = value | {"value": ERASED, "metadata": {}}
    return canonical(scrub.value(value)).encode()
