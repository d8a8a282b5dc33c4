"""The floor: the least code that does the same job. No store, no checks, no deadlines, no wrappers."""
