"""Export conversations as JSON lines without repeats, and import them with the same hashes."""
