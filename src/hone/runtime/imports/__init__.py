"""Conversations with other agents, brought in: a module for each format, and what they have in common."""

PROVIDER = "imported"
"""In the place of a model's provider: nobody can be asked there."""
