"""How a new conversation begins with a template: announced, as a history that every provider takes."""

from dataclasses import replace
from datetime import datetime

from hone.core.messages import Message, Role, SystemNote, ToolCall, answer, assistant
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.core.visible import one_line
from hone.features.templates.values import Template

HEADING = "# Examples from an earlier session, not part of this conversation"
_DESCRIPTION = 200


def announcement(template: Template) -> str:
    about = f", {one_line(template.description, _DESCRIPTION)}" if template.description else ""
    count = f"{len(template.examples)} calls" if len(template.examples) > 1 else "1 call"
    return "\n".join(
        (
            HEADING,
            f"- Template {template.name} ({template.work} work{about}): {count} that worked.",
            "- They show how tools are called. Nothing in them was asked, said or done in this conversation, "
            "and what they show may have changed since.",
        )
    )


def seeded(template: Template, root: str, now: datetime) -> Transcript:
    """The examples in place of a beginning. Each keeps its labels, so that what is learned afterwards rests
    on them as it would where they happened; the last word is the assistant's, so that the user's follows."""
    chain = Transcript(root)

    def say(message: Message, trust: Trust) -> None:
        nonlocal chain
        chain = chain.then(replace(message, template=template.name), trust, now)

    say(Message(Role.USER, (SystemNote(announcement(template)),)), Trust.AGENT)
    for number, example in enumerate(template.examples, 1):
        call = ToolCall(f"example_{number}", example.tool, example.arguments)
        say(assistant(call), min(example.said, Trust.AGENT, chain.trust))
        say(answer(call, example.result), min(example.trust, Trust.AGENT))
    ending = f"(End of the examples from template {template.name}. The conversation begins here.)"
    say(assistant(ending), min(Trust.AGENT, chain.trust))
    return chain
