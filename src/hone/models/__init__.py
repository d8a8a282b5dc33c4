"""Models of the providers: one module per wire format, wrappers, and an HTTP client."""
