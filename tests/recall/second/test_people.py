"""The bundled people: their shape, and that each question has its answer where it says."""

import re
from collections import Counter
from datetime import timedelta
from hashlib import sha256

import pytest
from msgspec import json

from hone.core.errors import HoneError
from hone.features.recall.bundled import ASKED, KINDS, BundledPerson, BundledQuestion, parse, people
from tests.conftest import Figures

# Figures of two days compare only while the set is the same: change this with the set, knowingly.
DIGEST = "744e0724a47db229"
SHARES = {
    "plain": 54,
    "paraphrase": 45,
    "date": 39,
    "speaker": 26,
    "changed": 22,
    "language": 21,
    "multi": 19,
    "phrase": 21,
}
STOP = frozenset(
    re.findall(
        r"\w+",
        """
        a about after again all also am an and any are as at be because been before but by can cannot
        could did do does done down each else even every far for from get gets give given go goes going
        had has have having he her here hers him his how i if in into is it its just like long make many
        may me mine more most much must my need no not now of off on once one only or other our out over
        own said say she should since so some such than that the their them then there these they this
        those through to too under until up us was way we were what when where which while who whom
        whose why will with without would you your yours s t d
        au aux avec ce ces cet cette comme dans de des du elle en est et eu il ils j je l la le les leur
        lui ma mais mes moi mon m n ne nos notre nous ont ou où par pas pour pourquoi qu que quel quelle
        quels quelles qui sa se ses si son sur suis ta te tes ton tu un une vais va vos vous y c à ai
        avait était étaient comment combien
        aber alle als auf aus bei bin bis da das dass dein dem den der die dir ein eine einem einen einer
        er es für habe hat hast ich ihr im ist ja kein man mein meine meinem meiner mich mir mit nach
        nicht noch nun nur ob oder schon sich sie sind und uns von vor war was wer wem wen wie wir wo zu
        zum zur welche welches welchen welcher
        """,
    )
)
MONTHS = (
    ("january", "januar", "janvier"),
    ("february", "februar", "février"),
    ("march", "märz", "mars"),
    ("april", "avril"),
    ("may", "mai"),
    ("june", "juni", "juin"),
    ("july", "juli", "juillet"),
    ("august", "août"),
    ("september", "septembre"),
    ("october", "oktober", "octobre"),
    ("november", "novembre"),
    ("december", "dezember", "décembre"),
)
ASSISTANT = re.compile(r"\byou (advise|come|suggest|recommend|tell me|say|think)|\bm'as-tu\b|\bhast du\b")
ALL = [(person, asked) for person in people() for asked in person.questions]


def of(kind: str) -> list[tuple[BundledPerson, BundledQuestion]]:
    return [(person, asked) for person, asked in ALL if asked.kind == kind]


def said(person: BundledPerson, asked: BundledQuestion) -> str:
    return "\n".join(person.sessions[session][message].text for session, message in asked.evidence)


def stems(text: str) -> set[str]:
    """The words that say something, cut so hard that forms and most compounds of a word are one."""
    words = (word for word in re.findall(r"[^\W_]+", text.lower()) if word not in STOP)
    return {re.sub(r"(?<=\w{3})(ing|ed|es|er|en|e|s|n)$", "", word)[:5] for word in words}


@pytest.mark.parametrize(
    "line",
    [
        "> nobody opened a session",
        "== 2025-13-01",
        "== 2025-01-01 10:00\n> one\n> two",
        "== 2025-01-01 10:00\n> {a} one\n< {a} two",
        "== 2025-01-01 10:00\n> {a} one\n? plain | b | Who? | one",
        "== 2025-01-01 10:00\n> {a} one\n? strange | a | Who? | one",
        "something else",
    ],
)
def test_a_file_with_a_mistake_is_refused_with_its_line(line: str) -> None:
    text = f"name: A\n{line}\n"
    with pytest.raises(HoneError, match=rf"a\.txt, line {text.count(chr(10))}:"):
        parse(text, "a.txt")


def test_there_are_nine_people_with_eighteen_months_of_sessions(figures: Figures) -> None:
    lengths = [sum(map(len, person.sessions)) for person in people()]
    assert len(lengths) == 9
    assert all(160 <= length <= 260 for length in lengths)
    for person in people():
        times = [message.at for session in person.sessions for message in session]
        assert times == sorted(set(times))
        assert times[-1] - times[0] > timedelta(days=480)
        assert times[-1] < ASKED
    figures(f"second recall set: {sum(lengths):,} messages, {len(ALL)} questions")


def test_the_user_begins_every_session_and_the_assistant_ends_it() -> None:
    for session in (session for person in people() for session in person.sessions):
        assert (session[0].role, session[-1].role) == ("user", "assistant")


def test_the_kinds_have_their_shares_and_no_question_is_asked_twice() -> None:
    assert set(SHARES) == set(KINDS)
    assert Counter(asked.kind for _, asked in ALL) == SHARES
    assert len({asked.question.lower() for _, asked in ALL}) == len(ALL)


def test_the_evidence_holds_the_answer_and_no_other_message_of_the_person_does() -> None:
    for person, asked in ALL:
        holding = {
            (number, place)
            for number, session in enumerate(person.sessions)
            for place, message in enumerate(session)
            if asked.answer.lower() in message.text.lower()
        }
        assert holding, asked
        assert holding <= set(asked.evidence), asked


def test_a_paraphrase_shares_no_stem_with_its_evidence() -> None:
    for person, asked in of("paraphrase"):
        assert not stems(asked.question) & stems(said(person, asked)), asked


def test_a_plain_question_and_a_phrase_share_a_stem_with_their_evidence() -> None:
    for person, asked in [*of("plain"), *of("phrase")]:
        text = said(person, asked)
        found = stems(asked.question) & stems(text) or asked.question in text
        assert found or re.search(asked.question.partition("*")[0], text), asked


def test_a_question_of_several_messages_needs_several() -> None:
    assert all(len(set(asked.evidence)) == 2 for _, asked in of("multi"))


def test_a_question_about_a_speaker_names_the_one_who_said_it() -> None:
    for person, asked in of("speaker"):
        session, message = asked.evidence[0]
        role = "assistant" if ASSISTANT.search(asked.question) else "user"
        assert person.sessions[session][message].role == role, asked


def test_a_month_in_a_question_about_a_date_is_the_month_of_its_evidence_or_the_one_beside_it() -> None:
    named = 0
    for person, asked in of("date"):
        words = set(re.findall(r"\w+", asked.question.lower()))
        months = [number for number, names in enumerate(MONTHS, 1) if words & set(names)]
        at = person.sessions[asked.evidence[0][0]][0].at
        assert all((month - at.month) % 12 in (0, 1, 11) for month in months), asked
        named += bool(months)
    assert named >= 30


def test_acknowledgements_are_repeated_in_every_home_and_across_homes(figures: Figures) -> None:
    everywhere: Counter[str] = Counter()
    for person in people():
        times = Counter(message.text for session in person.sessions for message in session)
        assert sum(count for count in times.values() if count >= 5) >= 50, person.name
        everywhere += times
    assert min(everywhere["go on"], everywhere["Done."], everywhere["ok"]) >= 20
    repeated = sum(count for count in everywhere.values() if count > 1)
    figures(f"second recall set: {repeated} of {everywhere.total():,} messages repeat another one")


def test_the_set_is_the_same_everywhere() -> None:
    assert sha256(json.encode(people())).hexdigest()[:16] == DIGEST
