"""Where sessions are kept. Each store is complete by itself; one contract suite holds them together."""
