"""What Hone costs, measured beside a bare loop that does the same work with nothing around it."""
