"""Learn from a conversation after its answer: reviews, when they run, what they may cost."""
