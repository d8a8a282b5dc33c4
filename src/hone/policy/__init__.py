"""When, who and what: decisions as data and pure functions, beside the mechanism that carries them out."""
