"""Run the checks that skills carry, in the sandbox, and switch off a skill whose check fails.

- Check: a file right below `checks/` of a skill. It passes if it ends with exit code 0.
- Settled: these very files have passed, or the skill is switched off, or nobody can run checks here.
"""
