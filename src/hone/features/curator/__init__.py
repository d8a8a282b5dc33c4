"""Keep the library of learned skills small: archive what nobody uses, merge what belongs together.

- Calendar: how many days with Hone had passed by which day; skills age by it.
- CuratedSkills: the skills that the curator may change, and what is known of each.
- Curator: archives unused learned skills, and asks a model which skills should be one.
- CuratorRun: one run of the curator, recorded together with what it changed; on screen and on disk a round.
- Grade: how much a learned skill is used: active, stale, to be archived.
"""
