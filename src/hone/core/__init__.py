"""Values and Protocols that all of Hone and every plugin use. Depends on the standard library and msgspec."""
