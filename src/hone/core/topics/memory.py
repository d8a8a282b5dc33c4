"""Review the journal: due after a number of user turns, less urgent if the agent wrote to the journal."""

from hone.core.jobs import Topic

QUESTION = """\
Now look back over this conversation and decide what belongs in the journal.

Save what would have changed this conversation if you had known it at the start:
- who the user is, what they work on and with, and how they want to work and be answered;
- what the user corrected (style, tone, format, length, workflow), what annoyed them, and what they asked you to remember;
- lasting facts about the situation: how this project is built, tested and released; names, places, decisions.

Use the user's own words where you can. Write one short fact per entry. `user` is about the person, `project` about this folder, `memory` about everything else. The current journal is below. If an entry is out of date or the user now says otherwise, replace it; do not add a second one beside it. Remove what the user has taken back. Leave alone what is already there.

Do not save: what only mattered today, what the files already say, guesses, errors that went away, missing programs or credentials, claims that a tool does not work, secrets."""  # noqa: E501

TOPIC = Topic(
    "memory",
    "turn",
    counts=lambda turn: int(turn.answered),
    resets=lambda turn: "memory" in turn.changed_by,
    question=QUESTION,
    setting="turns",
)
