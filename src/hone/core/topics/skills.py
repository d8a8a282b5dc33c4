"""Review skills: due after a number of replies with tool calls, less urgent if the agent changed a skill."""

from hone.core.jobs import Topic

QUESTION = """\
Now look back over this conversation for what is worth keeping as a skill: a way to do a class of task. Nobody waits for an answer, and the user does not read it.

Act if one of these is there:
- the user corrected how a task was done, or complained: the skill that governs such tasks must say it, also if the journal says it already;
- a technique, an order of steps, a fix or a way around something emerged that took effort to find;
- a skill that was used was wrong, lacked a step or is out of date: patch it now.

In this order: patch the skill that was used; patch one that covers the class of task (those most like this conversation are listed below; `skill_view` gives the text of one); add a file below references/ and one line in SKILL.md that points to it; only then create a skill, named after the class of task, not after today's case.

A good skill says when to use it, the steps in order, how to check the result, and the pitfalls met. Write what was done and worked, not what was planned. Leave out: what failed because something was not installed or no key was set (if setting it up was the cause, keep the fix), errors that went away, one-off stories. If only protected skills fit, save nothing. If two skills overlap, say so in your answer and change neither for that reason."""  # noqa: E501

TOPIC = Topic(
    "skills",
    "tool iteration",
    counts=lambda turn: turn.iterations,
    resets=lambda turn: "skill_manage" in turn.changed_by,
    question=QUESTION,
    setting="iterations",
)
