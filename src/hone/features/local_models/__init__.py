"""Run a small model on this machine, without a key and without a server."""
