"""Skills as folders of files: their valid names, files and texts. Most modules do not read the disk."""
