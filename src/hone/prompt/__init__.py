"""Build the prompts: the system prompt, notes about news, summaries of long conversations, and reviews."""
