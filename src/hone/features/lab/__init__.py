"""Show that learning works: the whole loop in a scripted world, as a curve over sessions.

- World: an owner with hidden rules, and the visits they make; it follows from a number, the seed.
- Rule: what the owner wants in one class of task; what is wanted is one of its values.
- Visit: one conversation: a task, or small talk. A task is done again until it is right.
- WorldLesson: a rule with a value, in the owner's words or others: what can be known about the world.
- Poison: a lesson that a page wants the agent to learn.
- Truth: the lessons without which the agent would have done something else.
- Learner: the scripted model; it does what its prompt tells it, and errs at a given rate.
- Arm: who learns, and how: Hone with learning on or off, or the peer.
"""
