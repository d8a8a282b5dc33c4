"""The set that recall is measured with: its shape, and that each question has its answer where it says."""

import json
import re
from collections import Counter
from dataclasses import asdict
from hashlib import sha256
from itertools import pairwise

from tests.conftest import Figures
from tests.recall.conversations import KINDS, QUESTIONS, Question, conversations, printed

SHARES = {
    "direct": 100,
    "rare": 20,
    "paraphrased": 75,
    "date": 30,
    "speaker": 30,
    "multi-hop": 30,
    "common": 15,
}
# Figures of two days compare only while the set is the same: change this with the set, knowingly.
DIGEST = "6a5ce5912b64bd29"
MONTHS = re.findall(
    r"\w+", "January February March April May June July August September October November December"
)
THIRDS = {"early": 0, "beginning": 0, "mid": 1, "late": 2, "end": 2}
STOP = frozenset(
    re.findall(
        r"\w+",
        """
        a about after again all also am an and any are as at be because been before but by can
        cannot could did do does done down each else even every far for from get gets give given go
        goes going had has have having he her here hers him his how i if in into is it its just like
        long make many may me mine more most much must my need no not now of off on once one only or
        other our out over own said say she should since so some such than that the their them then
        there these they this those through to too under until up us was way we were what when where
        which while who whom whose why will with without would you your yours
        """,
    )
)
ASKED = [asked for conversation in conversations() for asked in conversation.questions]
BY_PERSON = {conversation.person: conversation for conversation in conversations()}


def of(*kinds: str) -> list[Question]:
    return [asked for asked in ASKED if asked.kind in kinds]


def shared(asked: Question) -> set[str]:
    evidence = " ".join(BY_PERSON[asked.person].at(place).text for place in asked.evidence)
    return content(asked.question) & content(evidence)


def holds(text: str, answer: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", text, re.IGNORECASE) is not None


def content(text: str) -> set[str]:
    """The words that say something, without their endings."""
    words = (word.lower() for word in re.findall(r"[^\W_]+(?:'\w+)?", text))
    return {re.sub(r"(?<=\w{3})('s|ing|ed|es|s|e)$", "", word) for word in words if word not in STOP}


def names(text: str) -> set[str]:
    return content(" ".join(re.findall(r"\b[A-ZÀ-Ž]\w+(?:'s)?", text)))


def test_there_are_ten_conversations_of_200_to_400_messages_over_several_days(figures: Figures) -> None:
    lengths = [sum(map(len, conversation.sessions)) for conversation in conversations()]
    assert len(lengths) == 10
    assert all(200 <= length <= 400 for length in lengths)
    assert all(len({said[0].at.date() for said in each.sessions}) >= 5 for each in conversations())
    figures(f"recall set: {sum(lengths):,} messages, {len(ASKED)} questions")


def test_a_conversation_runs_forward_in_time_and_has_no_open_slot() -> None:
    for conversation in conversations():
        said = [conversation.at(place) for place in conversation.places()]
        assert [each.at for each in said] == sorted({each.at for each in said})
        assert {each.role for each in said} == {"user", "assistant", "tool"}
        assert not [each.text for each in said if not each.text.strip() or re.search(r"\{\w+\}", each.text)]


def test_the_user_begins_and_nobody_speaks_twice_in_a_row() -> None:
    for messages in (messages for conversation in conversations() for messages in conversation.sessions):
        roles = [said.role for said in messages]
        assert roles[0] == "user"
        assert not [pair for pair in pairwise(roles) if pair[0] == pair[1]]


def test_every_person_has_thirty_questions_and_the_kinds_have_their_shares() -> None:
    assert set(SHARES) == set(KINDS)
    assert Counter(asked.kind for asked in ASKED) == SHARES
    assert all(len(conversation.questions) == 30 for conversation in conversations())


def test_no_question_is_asked_twice_and_each_was_reworded() -> None:
    texts = (text for asked in ASKED for text in (asked.question, asked.draft))
    times = Counter(re.sub(r"\W+", " ", text.lower()) for text in texts)
    assert not [text for text, count in times.items() if count > 1]


def test_the_evidence_holds_the_answer_and_no_other_message_does() -> None:
    for asked in ASKED:
        conversation = BY_PERSON[asked.person]
        places = {
            place for place in conversation.places() if holds(conversation.at(place).text, asked.answer)
        }
        assert places, asked
        assert places <= set(asked.evidence), asked


def test_no_question_gives_its_answer_away() -> None:
    assert not [asked for asked in ASKED if holds(asked.question, asked.answer)]


def test_a_paraphrase_shares_nothing_but_names_with_its_evidence() -> None:
    for asked in of("paraphrased"):
        assert not shared(asked) - names(asked.question), asked


def test_a_direct_question_shares_a_word_with_its_evidence() -> None:
    assert not [asked for asked in of("direct", "rare") if not shared(asked)]


def test_a_rare_name_is_said_in_no_other_message() -> None:
    for asked in of("rare"):
        conversation = BY_PERSON[asked.person]
        said = [content(conversation.at(place).text) for place in conversation.places()]
        assert any(sum(word in words for words in said) == 1 for word in names(asked.question)), asked


def test_only_a_question_of_two_hops_needs_two_messages() -> None:
    for asked in ASKED:
        assert len(set(asked.evidence)) == (2 if asked.kind == "multi-hop" else 1), asked


def test_a_question_about_a_speaker_names_the_one_who_said_it() -> None:
    for asked in of("speaker"):
        addressed = re.search(r"\byour?\b", asked.question.replace("I told you", ""), re.IGNORECASE)
        said = BY_PERSON[asked.person].at(asked.evidence[0])
        assert said.role == ("assistant" if addressed else "user"), asked


def test_a_question_about_a_date_names_the_time_of_its_evidence() -> None:
    for asked in of("date"):
        at = BY_PERSON[asked.person].at(asked.evidence[0]).at
        words = re.findall(r"\w+", asked.question)
        assert [word for word in words if word in MONTHS] == [MONTHS[at.month - 1]], asked
        assert all(THIRDS.get(word, third(at.day)) == third(at.day) for word in words), asked


def third(day: int) -> int:
    return min((day - 1) // 10, 2)


def test_the_questions_on_disk_are_the_ones_that_are_built() -> None:
    stored = QUESTIONS.read_text("utf-8")
    assert stored == printed(), "run python -m tests.recall.conversations"
    assert [each["question"] for each in json.loads(stored)] == [asked.question for asked in ASKED]


def test_the_set_is_the_same_everywhere() -> None:
    whole = json.dumps([asdict(each) for each in conversations()], default=str, ensure_ascii=False)
    assert sha256(whole.encode()).hexdigest()[:16] == DIGEST
