"""Stores for sessions and for what was learned. Each store is complete; each port has one contract suite."""
