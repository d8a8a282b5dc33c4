"""Keep calls that worked in one session as examples for the start of others."""
