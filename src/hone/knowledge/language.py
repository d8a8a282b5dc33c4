"""The rules about words and sentences that `quoting` needs to compare an entry with its quote."""

import re
from itertools import pairwise

from hone.core.regex import regex


def _set(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


FREE = _set(
    "a an the this that these those it its there here",
    "i me my mine myself you your yours we us our ours he him his she her hers they them their theirs",
    "user users owner prefer prefers preferred want wants wanted like likes liked wish wishes would",
    "am is are was were be been being do does did has have had to of in on at for with by as please thanks",
    "der die das den dem des ein eine einen einem einer eines ich mir mich mein meine meinen du dich wir uns",
    "unser unsere unseren sie er es nutzer nutzerin benutzer mag möchte bevorzugt ist sind war habe",
    "haben hat zu zum zur im am auf für mit bitte",
    "le la les un une des du de je me moi mon ma mes tu te vous nous notre nos il elle on utilisateur",
    "utilisatrice préfère préfèrent veut aime suis est sont était avons à au aux en pour avec dans",
    "el los las unos unas del al yo mi mis tú te se le su sus nuestro nuestra usuario usuaria prefiero",
    "prefiere quiere quiero gusta es son era para con que por",
    "lo gli uno una di io mio nostro nostra suo sua utente preferisco preferisce vuole è sono per il e",
    "o os as um uma da do das dos eu meu minha nosso nossa seu sua usuário quer prefiro é são em na nos nas",
    "com het een ik mij mijn jij je wij ons onze hij zij hun gebruiker wil voorkeur van met",
    "я мне меня мой моя мои моего ты мы нам наш наша наше пользователь пользователю предпочитает предпочитаю",
    "хочет в на с у для это",
    "mój moja moje nasz nasza nasze użytkownik bana benim bizim kullanıcı",
)
"""How an entry speaks of the owner, and what holds a sentence together. No word here may change what is said:
no "always", no "must", no "or"."""

_FILLERS = _set(
    "can could will should please remember note really very just also still actually simply always ever",
    "quite rather lot use live call make give show find get run all",
    "immer toujours siempre всегда gib geef donne dame dammi дай",
    "let hi hello hey ok okay yes well sure thank thx favor favore plaît alstublieft пожалуйста",
)
"""What an entry may leave out: without it a sentence says the same, or hardly less."""

OPENING = _set("when whenever")
"""What may be left out where a sentence begins: "When you write, be brief". Later on it is a condition."""

AND = _set("and but so und aber sondern et mais y pero ma mas maar и но")
IF = _set("if unless before after until wenn falls bevor nachdem si avant après antes después prima если")
"""Where another clause begins: after the former, with the latter."""

_NEGATIONS = _set(
    "not no never none nothing nobody nowhere neither nor dont doesnt didnt cant wont",
    "nicht nichts nie niemals niemand weder kein keine keinem keinen keiner keines",
    "ne non ni pas jamais rien aucun aucune personne",
    "nunca jamás jamas nada ningún ningun ninguna ninguno tampoco",
    "mai niente nulla nessun nessuno nessuna né",
    "não nao nenhum nenhuma nem",
    "niet niets geen nooit",
    "не нет никогда ни ничего никто нельзя",
)
BESIDE_NE = _set("pas jamais rien aucun aucune personne plus")
"""With `ne` before or after them they are one negation."""
HAN_NEGATION = regex("[不没沒别別勿无無未莫非禁]|な(?:い|し|か[っろ])|ません|ずに|ぬ|やめ|止め|だめ|ダメ")
_TURNING = _set(
    "without instead than over unless except only until before after if or against despite rarely seldom",
    "hardly barely less fewer least unlike else otherwise from false wrong bad worse worst",
    "ohne statt anstatt sondern außer nur bis bevor nachdem wenn falls oder gegen selten kaum weniger",
    "sans plutôt sauf seulement avant après si ou contre rarement moins",
    "sin vez excepto solo sólo antes después hasta contra menos",
    "senza invece tranne soltanto prima dopo fino contro meno",
    "sem somente depois até",
    "zonder alleen voordat nadat tegen minder",
    "без вместо кроме только если прежде после или против редко меньше",
)
_BEGINNINGS = tuple(
    _set("deprecat obsolet vermeid verbiet lösch évit evit interdi prohib suprim vermijd удал избег запре")
)
_IRREGULAR = {
    form: verb
    for verb, *forms in (
        ("begin", "began", "begun"),
        ("break", "broke", "broken"),
        ("build", "built"),
        ("choose", "chose", "chosen"),
        ("forbid", "forbade", "forbidden"),
        ("give", "gave", "given"),
        ("go", "gone"),
        ("hold", "held"),
        ("keep", "kept"),
        ("leave", "left"),
        ("make", "made"),
        ("mean", "meant"),
        ("run", "ran"),
        ("say", "said"),
        ("send", "sent"),
        ("speak", "spoke", "spoken"),
        ("take", "took", "taken"),
        ("teach", "taught"),
        ("tell", "told"),
        ("write", "wrote", "written"),
    )
    for form in forms
}
_ENDINGS = _set(
    "s es e ed d ing er r en n em st t te ten et ez ent ons ir ar as a o os is i ie ies y re est an am",
    "ю ет ем ешь ете ют у а ы и е й ь ть л ла ли ой ом ах ов",
) | {""}


_ABBREVIATED = "".join(
    rf"(?<!\b(?i:{word})\.)" for word in ("dr", "mr", "ms", "mrs", "prof", r"e\.g", r"i\.e", r"\d", r"\d\d")
)
_NO_ITEM = r"(?!\s*(?:[-*+•]|\d{1,3}[.)])\s)"
_BREAK = regex(
    rf"{_ABBREVIATED}(?<=[.!?…])[\"')\]”’»]*\s+{_NO_ITEM}|[。！？]+[」』”]?{_NO_ITEM}|(?<![:：])\n\s*\n{_NO_ITEM}"
)
_LIST = regex(r":(?:\s|$)|：")


def sentences(text: str) -> list[tuple[int, int]]:
    """Where each begins and ends. The items of a list stay with what stands above them, for that may be a no;
    so does what stands between semicolons after a colon."""
    ends = [0, *(found.end() for found in _BREAK.finditer(text)), len(text)]
    for start, end in pairwise(tuple(ends)):
        if not _LIST.search(text, start, end):
            ends += [found.end() for found in re.compile("[;；]").finditer(text, start, end)]
    return [(start, end) for start, end in pairwise(sorted(ends)) if text[start:end].strip()]


def stem(word: str) -> str:
    word = _IRREGULAR.get(word, word)
    for ending, rest in (("ies", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 2 and not word.endswith(("ss", "us", "is")):
            word = word.removesuffix(ending) + rest
            break
    word = word.removesuffix("e")
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


_VERBS = _set(
    "stop avoid hate dislike forbid ban refuse reject drop remove disable delete skip ignore deny lack miss",
    "fail break quit prevent block say claim suggest pretend",
)
VERBS = frozenset(f"¬{word}" for word in (*map(stem, _VERBS), *_BEGINNINGS))
"""Marks of verbs that turn a meaning, or say that it is somebody else's."""


_DROPPABLE = frozenset(map(stem, _FILLERS))


def is_droppable(word: str) -> bool:
    return word in _FILLERS or stem(word) in _DROPPABLE


def mark(word: str) -> str:
    """What the word is called if it turns a meaning, else nothing. Most negations have one name. No name is a
    word, so that nothing can be taken for one."""
    if word in _NEGATIONS:
        return "¬not"
    if HAN_NEGATION.fullmatch(word):
        return "¬なし" if word == "なし" else "¬不"
    if word in _TURNING:
        return f"¬{word}"
    if word not in FREE and f"¬{stem(word)}" in VERBS:
        return f"¬{stem(word)}"
    return next((f"¬{beginning}" for beginning in _BEGINNINGS if word.startswith(beginning)), "")


def inflected(one: str, other: str) -> bool:
    """Whether two words of letters differ in nothing but their ending."""
    if len(stem(one)) > 1 and stem(one) == stem(other):
        return True
    pairs = enumerate(zip(one, other, strict=False))
    alike = next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
    return any(one[at:] in _ENDINGS and other[at:] in _ENDINGS for at in range(max(4, alike - 2), alike + 1))
