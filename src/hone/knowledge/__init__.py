"""The one write path of what was learned: from an edit to the ledger, and from there to the files."""
