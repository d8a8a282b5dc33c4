"""The journal: what is known of the user and the situation, in plain text."""
