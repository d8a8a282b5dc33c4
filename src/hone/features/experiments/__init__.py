"""Measure whether a lesson helps: run the same task with it and without it."""
