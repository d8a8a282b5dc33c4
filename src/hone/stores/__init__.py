"""Where sessions and what was learned are kept. Each store is complete by itself; one contract suite a port
holds them together."""
