"""Learn from a conversation after its answer: run reviews, decide when they run and what they may cost."""
