"""The `hone` command: one module per subject, imported when one of its commands runs."""
