"""F5: words are found however they are written, what is left says nothing of them, and JSON stays JSON."""

import json
from collections.abc import Callable

from hypothesis import assume, given
from hypothesis import strategies as st

from hone.core.erasure import Scrubber, is_blank
from hone.core.holding import ERASED
from hone.core.messages import Message, decode, encode
from hone.stores.redacting import blank_message, scrub_message
from tests.given import replies, texts, user_messages

LETTERS = "abcXYZ09äÖéßж漢🙂\"'/\\-."
words = (
    st.lists(st.text(LETTERS, min_size=2, max_size=8), min_size=1, max_size=4)
    .map(" ".join)
    .filter(lambda text: len(text.replace(" ", "")) >= 4 and not ERASED.count(text.lower()))
)
SPELLINGS: dict[str, Callable[[str], str]] = {
    "as it is": lambda text: text,
    "over lines": lambda text: text.replace(" ", "\n   "),
    "escaped": lambda text: json.dumps(text)[1:-1],
    "escaped but for letters": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "escaped twice": lambda text: json.dumps(json.dumps(text))[3:-3],
    "in capitals": lambda text: "".join(each.upper() if len(each.upper()) == 1 else each for each in text),
}
spellings = st.sampled_from(sorted(SPELLINGS))


@given(words, texts, texts, spellings)
def test_words_are_found_in_every_spelling_and_nothing_of_them_is_left(
    secret: str, before: str, after: str, spelling: str
) -> None:
    scrub = Scrubber((secret,))
    text = f"{before} {SPELLINGS[spelling](secret)} {after}"
    assert scrub.count(text) >= 1
    assert scrub.finds(text.encode())
    left = scrub.text(text)
    assert ERASED in left
    assert scrub.count(left) == 0
    assert not scrub.finds(left.encode())


@given(words, st.dictionaries(texts, texts | st.integers() | st.lists(texts)), spellings)
def test_json_stays_json(secret: str, value: dict[str, object], spelling: str) -> None:
    scrub = Scrubber((secret,))
    whole = json.dumps({**value, "key": f"a {SPELLINGS[spelling](secret)} b"})
    left = json.loads(scrub.json_text(whole))
    assert scrub.count(json.dumps(left, ensure_ascii=False)) == 0


@given(words, user_messages | replies(1, calls=True) | replies(2, calls=False))
def test_a_message_without_the_words_is_a_message_like_any_other(secret: str, message: Message) -> None:
    scrub = Scrubber((secret,))
    left = scrub_message(message, scrub)
    assert decode(encode(left)) == left
    assert [type(part) for part in blank_message(left).parts] or not left.parts
    if not scrub.finds(encode(message)):
        assert left == message


@given(words)
def test_of_a_text_that_was_all_secret_nothing_is_left(secret: str) -> None:
    assume(any(each.isalnum() for each in secret))
    assert is_blank(Scrubber((secret,)).text(f"- {secret}."))
    assert not is_blank(f"{ERASED} and more")
