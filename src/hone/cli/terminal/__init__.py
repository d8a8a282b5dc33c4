"""The chat's terminal: prompt, live output and questions. Loaded only if the chat is interactive."""
