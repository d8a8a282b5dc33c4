"""The lab's figures: Hone and its peer, side by side, in the same worlds and with the same learner."""
