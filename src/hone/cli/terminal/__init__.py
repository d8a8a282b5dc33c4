"""The chat's terminal: prompt, live output and questions. It is imported only if the chat is interactive."""
