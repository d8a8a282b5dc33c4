"""Review the journal: due after a number of user turns, less urgent if the agent wrote to the journal."""

from hone.core.jobs import Topic

QUESTION = """\
Now look back over this conversation for what is worth keeping in the journal. Nobody waits for an answer, and the user does not read it.

Keep what would have changed this conversation had you known it at the start:
- who the user is, what they work on and with, how they want to be answered and to work;
- what the user corrected (tone, length, format, order of work), what annoyed them, what they asked you to remember;
- lasting facts of the situation: how this project is built, tested, shipped; names, places, decisions.

Use the user's own words where you can, one fact an entry, short enough to be read many times. `user` is for the person, `project` for this folder, `memory` for everything else. What the journal says now stands below: replace what is out of date instead of adding beside it, remove what the user has taken back, and leave alone what it says already.

Leave out: what only mattered today, what stands in the files anyway, guesses, errors that went away (if another try worked, the other try is the lesson), missing programs or keys, "tool X does not work", secrets."""  # noqa: E501

TOPIC = Topic(
    "memory",
    "turn",
    counts=lambda turn: int(turn.answered),
    resets=lambda turn: "memory" in turn.changed_by,
    question=QUESTION,
    setting="turns",
)
