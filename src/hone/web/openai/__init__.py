"""The endpoint for any OpenAI client."""
