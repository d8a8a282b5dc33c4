"""What the page reads and does, one module a subject."""
