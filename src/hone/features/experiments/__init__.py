"""Measure whether a lesson helps: run the same task with it and without it.

- Arm: one side of a pair of runs: with the lesson, or without it.
- Check: what must hold after a run; the owner writes it.
- Lesson: what is measured: a skill, an entry of the journal or a template, by its content.
- Study: one lesson on one task with one model, and the runs that are done.
- Task: what is run again and again: files, a request and a check.
"""
