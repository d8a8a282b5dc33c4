"""Hone behind HTTP: an API for a page, and an endpoint that any OpenAI client can talk to."""
