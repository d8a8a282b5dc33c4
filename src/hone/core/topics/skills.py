"""Review skills: due after a number of replies with tool calls, less urgent if the agent changed a skill."""

from hone.core.jobs import Topic

QUESTION = """\
Now look back over this conversation and decide what belongs in a skill: how to do a class of task for this user.

Act if one of these happened:
- The user corrected style, tone, format, length or workflow, or complained about how you did a task. Put it into the skill that governs such tasks, even if the journal has it too.
- You found a technique, fix, workaround or way of using a tool that took effort to find.
- A skill you used was wrong, out of date or missed a step. Patch it now.

Take the first of these that fits:
1. Patch the skill that was in play.
2. Patch an umbrella skill that covers this class of task. The closest skills are listed below; `skill_view` shows one.
3. Add a support file to one of them, and a one-line pointer to it in SKILL.md. references/ holds session detail and condensed knowledge, templates/ holds starters to copy, scripts/ holds actions to run again. If a command can tell whether a script still works, put it into checks/: it runs in a copy of the skill's folder, without a network, and passes with exit code 0.
4. Create an umbrella skill for the class of task. Name it after the class, never after today's case.

A good skill says when to use it, the steps in order, how to check the result, and the pitfalls. Write down what worked, not what was planned.

Do not save: failures of the environment (missing programs, packages or credentials), claims that a tool does not work, errors that went away, one-off stories. If a retry worked, the lesson is the retry. If the setup was the cause, save the fix. If only protected skills fit, save nothing. If two skills overlap, say so in your reply and leave both as they are."""  # noqa: E501

TOPIC = Topic(
    "skills",
    "tool iteration",
    counts=lambda turn: turn.iterations,
    resets=lambda turn: "skill_manage" in turn.changed_by,
    question=QUESTION,
    setting="iterations",
)
