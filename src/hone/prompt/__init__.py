"""What the model is told before the first message."""
