"""Keep the library of learned skills small: put away what nobody uses, merge what belongs together."""
