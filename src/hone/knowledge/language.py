"""Define what the quoting rule knows about a language.

The word lists are data: one file per language in `languages/`. A word that no list names is a content word.
So a word that is missing from a list can make a lesson wait, but cannot turn its meaning.
"""

from enum import IntEnum

from msgspec import Struct


class Kind(IntEnum):
    """What a word does in a sentence."""

    CONTENT = 0
    GLUE = 1
    BE = 2
    HAVE = 3
    JOIN = 4
    SUBORDINATE = 5
    PREPOSITION = 6
    POSTPOSITION = 7
    LINK = 8
    LIMIT = 9
    NOT = 10
    NEVER = 11
    SELF = 12
    OWN = 13
    OWN_AFTER = 14
    YOU = 15
    YOUR = 16
    THIRD = 17
    THEIRS = 18
    POLITE = 19
    PLEASE = 20
    FILLER = 21
    PREFER = 22
    WANT = 23


class Language(Struct, frozen=True, kw_only=True):
    """The lists of one language, as in its file. A list of words is one string, split at white space; a
    pattern is a regular expression; a list of lines has one group of words or endings per line."""

    glue: str = ""
    """Articles and other words that hold a sentence together: ignored on both sides."""
    be: str = ""
    """Forms of "be" in the present: ignored, but a participle after them is passive."""
    have: str = ""
    joins: str = ""
    """Between two clauses: and, but."""
    subordinates: str = ""
    """Words that begin a clause that can swap with its neighbor: if, when, because."""
    because: str = ""
    """Those that begin a reason."""
    prepositions: str = ""
    """May be left out or added, but not exchanged: in, for, with."""
    postpositions: str = ""
    """The same, after their word."""
    links: str = ""
    """Prepositions that must stay: from, to, over."""
    cases: str = ""
    """Pattern: endings that act as a preposition."""
    limits: str = ""
    """Must stay where they are, in this form: only, except, could, was, today."""
    should: str = ""
    """What an entry may say as "the user wants"."""
    modals: str = ""
    """Verbs that cannot form an order: can, will, need."""
    negations: str = ""
    nevers: str = ""
    i: str = ""
    we: str = ""
    me: str = ""
    my: str = ""
    you: str = ""
    your: str = ""
    third: str = ""
    theirs: str = ""
    user: str = ""
    """An entry's names for the owner."""
    user_object: str = ""
    users: str = ""
    """The same as a possessive, before what is owned."""
    users_after: str = ""
    polite: str = ""
    """May be left out at the beginning of a part."""
    please: str = ""
    """May be left out anywhere, and makes a question a request."""
    fillers: str = ""
    """May be left out where no "not" stands before them, and may move."""
    prefer: str = ""
    want: str = ""
    """In the owner's form: in the first person, or as an order."""
    prefers: str = ""
    wants: str = ""
    """In an entry's form: in the third person."""
    use: str = ""
    """Orders that say no more than "I prefer": use, give, write."""
    naming: str = ""
    """Participles between a thing and its name: called, named."""
    ands: str = ""
    """Those of the joins that add, and do not contrast."""
    chatter: str = ""
    """A part of a sentence with only these and glue says nothing: the thing is, to be honest."""
    comment: str = ""
    """Pattern: the start of a remark that may be left out at the end of a sentence: it, that, I."""
    generic: str = ""
    """Pattern: the same, about people and things in general: everybody, the."""
    others: str = ""
    """Pattern: the same, about somebody: she, my."""
    consequence: str = ""
    """Pattern: the same, for what follows from the rest: so, otherwise."""
    doubts: str = ""
    """Words that make a remark more than a remark: think, say, joke."""
    times: str = ""
    """Words that may make an order temporary: tomorrow, week, hurry."""
    common: str = ""
    """More words for detecting the language."""
    first: str = ""
    """Endings of a verb in the first person that need no pronoun; `*` where nothing shows who acts."""
    either: str = ""
    """Endings of a verb that are the same in the first and the third person."""
    names: bool = True
    """Whether a capital inside a sentence marks a name."""
    bare: bool = False
    """Whether a verb without an ending is an order, and not what the owner does."""
    final: bool = False
    """Whether an order puts its verb first and an infinitive puts it last."""
    moves: bool = True
    """Whether a part of a clause may take another place."""
    adverbs: str = ""
    """Pattern: words that may stand anywhere in their clause."""
    question: str = ""
    """Pattern: the start of a question that has lost its question mark."""
    tag: str = ""
    """Pattern: what makes an order sound like a question: "Use tabs, okay?"."""
    retract: str = ""
    """Pattern: the start of a sentence that takes back or limits the one before it."""
    correct: str = ""
    """Pattern: words that make a short sentence a correction of the one before it."""
    introduce: str = ""
    """Pattern: words after which the sentences are another person's, or invented."""
    same: tuple[str, ...] = ()
    """Lines: words that count as the first one."""
    folds: str = ""
    """Letters that change between the forms of a word: each second one replaces the one before it."""
    endings: tuple[str, ...] = ()
    """Lines: endings that can replace each other; `-` is none."""
    tenses: tuple[str, ...] = ()
    """Lines: endings that are also in one of those lines, but differ in tense."""
    forms: tuple[str, ...] = ()
    """Lines: forms of one word."""
    participles: tuple[str, ...] = ()
    """Lines: an ending of an active form, and that of its participle."""
    participle_forms: tuple[str, ...] = ()
    phrases: str = ""
    """Lines of `pattern => words`: expressions that are rewritten before a sentence is split into words."""
