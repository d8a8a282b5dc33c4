"""The endpoint that any OpenAI client can talk to."""
