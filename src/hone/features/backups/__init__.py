"""Copy a home into one file while others write to it, and restore a home from such a file.

- Backup: a tar.gz file with a manifest first. It has no keys, locks or caches.
- Manifest: what is in a backup: size, SHA-256 and holding of each member.
- Member: one file of the home. A database is copied as a whole, at one moment.
- Stage: a private folder beside the result, in which it is made before it gets its name with one rename.
"""
