"""Skills as folders of files: what they may be called, hold and say. Knows no disk."""
