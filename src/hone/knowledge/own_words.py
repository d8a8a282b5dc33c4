"""Phrase a lesson in the owner's own words.

Where foreign text was read, an entry takes effect only if it says what the owner said. Agents shorten and
reword, and code cannot always tell that this changed nothing. The sentence itself is certain.
"""

from collections.abc import Sequence

from hone.core.errors import Refused
from hone.core.ledger import Author, Target
from hone.core.value import replace
from hone.core.visible import one_line
from hone.knowledge import journal
from hone.knowledge.quoting import quotes
from hone.knowledge.resemblance import find_alike, is_part_of
from hone.knowledge.sentences import sentences

LONGEST = 300
"""The most characters of a sentence that becomes an entry."""
_SHOWN = 160

Edits = Sequence[tuple[Target, journal.Edit]]


def put_in_own_words(edits: Edits, author: Author) -> Edits | None:
    """Return the edits with the owner's sentence in place of each entry that says something else; None if one
    of them has no such sentence."""
    reworded: list[tuple[Target, journal.Edit]] = []
    for target, edit in edits:
        if isinstance(edit, journal.Add | journal.ReplaceEntry) and not quotes(edit.text, author.quotes):
            sentence = _find_sentence(edit.text, author.quotes)
            if not sentence:
                return None
            reworded.append((target, replace(edit, text=sentence)))
        else:
            reworded.append((target, edit))
    return reworded


def check_words(edits: Edits, author: Author) -> None:
    """Raise Refused for an addition that rests on the owner's words but uses others, so that the agent tries
    again with those. One that is made anyway may be pending."""
    for _, edit in edits:
        if isinstance(edit, journal.Add) and not edit.anyway and author.quotes:
            raise Refused(
                "Not saved: text from elsewhere was read in this conversation, so an entry takes effect only "
                f"in the user's own words, such as “{one_line(author.quotes[0], _SHOWN)}”. Save those. "
                "To let your wording wait for the user's approval, use add_anyway."
            )


def states(entry: str, owner: Sequence[str]) -> bool:
    """Tell whether the owner's words are the entry, or contain a sentence that it was made of."""
    if quotes(entry, owner):
        return True
    sentence = _find_sentence(entry, owner)
    return bool(sentence) and quotes(sentence, owner)


def _find_sentence(entry: str, owner: Sequence[str]) -> str:
    """Return the owner's sentence that the entry was made of; empty if there is none. An entry with a word
    that the sentence lacks was made of something else as well."""
    found = [text[start:end].strip() for text in owner for start, end in sentences(text)]
    like = [each for each in found if len(each) <= LONGEST and is_part_of(entry, each)]
    return next(iter(find_alike(entry, like)), "")
