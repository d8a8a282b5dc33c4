"""The only write path for what is learned: from an edit to the ledger, and from the ledger to the files."""
