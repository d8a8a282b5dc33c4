"""What a chat needs of a terminal: a prompt, moving lines, questions. Loaded when somebody sits there."""
