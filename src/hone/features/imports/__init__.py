"""Conversations with other agents, brought in: a module for each format, and what they have in common."""
