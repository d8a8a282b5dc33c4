"""Remove Hone from this machine, and the home with its keys if the owner wants that."""
