"""The values of attribution: items of a prompt, the turn they were in, and what is said about each."""

from enum import StrEnum

from msgspec import Struct

from hone.core.ledger import ChangeId, Entry
from hone.core.messages import Message, Role
from hone.core.ports import Header
from hone.core.prefix import Prefix
from hone.core.transcript import Node


class ItemKind(StrEnum):
    ENTRY = "entry"
    SKILL = "skill"
    TEMPLATE = "template"
    MEMORY = "memory"
    INSTRUCTIONS = "instructions"
    TEAM = "team"
    """An entry that a colleague shares; its name is theirs."""


class ItemPlace(StrEnum):
    """How an item reached the model."""

    PROMPT = "prompt"
    NOTE = "note"
    """With the user's words, in a later message."""
    CONVERSATION = "conversation"
    """Written or looked up in the conversation itself."""
    EXAMPLES = "examples"


class PromptItem(Struct, frozen=True):
    """`name` is that of the skill, the template or the file, the part of the journal an entry is in, or the
    key of a memory. `message` is where it appeared, 0 for the prompt; `withdrawn` is the message that told
    the model that it no longer holds."""

    kind: ItemKind
    name: str
    text: str
    place: ItemPlace = ItemPlace.PROMPT
    message: int = 0
    withdrawn: int = 0


class AnsweredTurn(Struct, frozen=True):
    """One turn, as the model was given it: its prefix, the messages before the request, and those from the
    request to the answer. `number` counts in the conversation as it is shown now."""

    header: Header
    prefix: Prefix
    before: tuple[Node, ...]
    turn: tuple[Node, ...]
    number: int

    @property
    def request(self) -> Message:
        return self.turn[0].message

    @property
    def text(self) -> str:
        return self.turn[-1].message.text

    @property
    def words(self) -> str:
        """Return what the user said in this turn, including while the agent worked."""
        said = (node.message for node in self.turn if node.message.role is Role.USER)
        return "\n".join(message.text for message in said)


class Use(StrEnum):
    USED = "used"
    LIKELY = "likely"
    UNLIKELY = "unlikely"


class Method(StrEnum):
    RECORD = "record"
    MEASURE = "measure"
    CITATION = "citation"
    ABLATION = "ablation"


class JudgedItem(Struct, frozen=True):
    """`because` is the reason in a few words. `score` is the measure's, from 0 to 1. `brought` is the change
    that added the entry, if it is unchanged; `target` is its part of the journal. `steps` are commands that
    correct the item."""

    item: PromptItem
    use: Use
    by: tuple[Method, ...]
    score: float = 0.0
    because: str = ""
    brought: Entry | None = None
    target: str = ""
    pinned: bool | None = None
    steps: tuple[str, ...] = ()

    @property
    def change(self) -> ChangeId | None:
        return self.brought.id if self.brought else None

    @property
    def counts(self) -> bool:
        return self.use is not Use.UNLIKELY


class Explanation(Struct, frozen=True):
    """An answer and all items in its prompt, those that shaped it first."""

    answer: AnsweredTurn
    items: tuple[JudgedItem, ...]

    @property
    def used(self) -> tuple[JudgedItem, ...]:
        return tuple(each for each in self.items if each.counts)
