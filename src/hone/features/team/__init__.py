"""Team knowledge: entries and skills that people share with their colleagues, through one database.

- Team: the owner of the shared rows. Its ledger is read by everybody and belongs to nobody alone.
- Proposal: an entry or a skill that waits in the team's ledger for a second person.
- Exposure: words in a text that tell of a person, a machine, a place or a secret, shown before it is shared.
- Sharer: the person who proposed what the team now knows.
"""
