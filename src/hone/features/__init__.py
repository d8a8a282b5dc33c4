"""One package per feature, loaded by name through `hone.registry`. A feature imports no other feature."""
