"""The only write path for lessons: from an edit to the ledger, and from the ledger to the files."""
