"""The operations of the page, one module per subject."""
