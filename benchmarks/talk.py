"""The messages of every measurement, for Hone and for the floor alike: about 300 bytes each.

The provider needs no script and no memory: a message that ends with `left=3` is answered with a call of the
tool `probe`, whose result ends with `left=2`, and so on; `left=0` is answered with text.
"""

from typing import Any

Wire = dict[str, Any]

WORDS = (
    "The parser keeps a list of open brackets, and the second test says that it forgets one of them when a "
    "comment follows. I will look at how the tokens are cut before I change anything in the tree itself, "
)
REMARK = "Let me see what the next file says about the brackets before I change anything. "
PIECES = [f"{word} " for word in REMARK.split()]
SCHEMA: Wire = {
    "name": "probe",
    "description": "Look at one thing.",
    "parameters": {
        "type": "object",
        "properties": {"left": {"type": "integer"}},
        "required": ["left"],
    },
}


def spoken(left: int) -> str:
    """Return a message of the user, or the result of a tool."""
    return f"{WORDS}left={left}"


def history(count: int) -> list[Wire]:
    """Return the start of a conversation in OpenAI's format: a question, a call, its result, an answer,
    again.

    An even count; of a half round at the start the call and its result are left out.
    """
    rounds = [_message(number) for number in range(count + count % 4)]
    return rounds[:1] + rounds[3:] if count % 4 else rounds


def _message(number: int) -> Wire:
    text, name = f"{number}: {WORDS}", f"call_past_{number // 4}"
    match number % 4:
        case 0:
            return {"role": "user", "content": text}
        case 1:
            function = {"name": "probe", "arguments": '{"left": 0}'}
            call = {"id": name, "type": "function", "function": function}
            return {"role": "assistant", "content": text, "tool_calls": [call]}
        case 2:
            return {"role": "tool", "tool_call_id": name, "content": text}
    return {"role": "assistant", "content": text}
