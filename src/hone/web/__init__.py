"""Hone over HTTP: an API for the page, and an endpoint for any OpenAI client."""
