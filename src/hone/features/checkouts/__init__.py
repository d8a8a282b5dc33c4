"""Edit journal and skills as files when a remote database serves them: `hone pull` and `hone push`.

- Checkout: a folder with the journal and the active skills as files. The home is one, and so is any folder
  that was pulled into.
- Base: the version of a file that was last pulled or pushed. A merge compares both sides with it.
"""
