"""One package per feature, loaded by name through `hone.registry`. Features do not import each other."""
