"""Say a lesson in the owner's own words.

Where foreign text was read, an entry takes effect only if it says what the owner said. Agents shorten and
reword, and code cannot always tell that this changed nothing. The sentence itself is beyond doubt.
"""

from collections.abc import Sequence

from hone.core.errors import Refused
from hone.core.ledger import Author, Target
from hone.core.value import replace
from hone.core.visible import one_line
from hone.knowledge import journal
from hone.knowledge.quoting import quotes
from hone.knowledge.resemblance import find_alike, resembles
from hone.knowledge.sentences import sentences

LONGEST = 300
"""Characters of a sentence that is an entry."""
_SHOWN = 160

Edits = Sequence[tuple[Target, journal.Edit]]


def put_in_own_words(edits: Edits, author: Author) -> Edits | None:
    """Return the edits with the owner's sentence in place of each entry that says something else; None if
    there is no such sentence for one of them."""
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
    """Raise Refused for an addition that rests on the owner's words and is in others, so that the agent
    tries again with those. One that is made anyway may wait for the owner."""
    for _, edit in edits:
        if isinstance(edit, journal.Add) and not edit.anyway and author.quotes:
            raise Refused(
                "Not saved: text from elsewhere was read in this conversation, so an entry takes effect only "
                f"in the user's own words, such as “{one_line(author.quotes[0], _SHOWN)}”. Save those. "
                "To let your wording wait for the user's approval, use add_anyway."
            )


def _find_sentence(entry: str, owner: Sequence[str]) -> str:
    """Return the owner's sentence that the entry was made of; empty if there is none."""
    found = [text[start:end].strip() for text in owner for start, end in sentences(text)]
    like = [each for each in found if len(each) <= LONGEST and resembles(entry, each)]
    return next(iter(find_alike(entry, like)), "")
