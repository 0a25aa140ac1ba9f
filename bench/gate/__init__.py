"""The gate: whether an engine does more work than it did, or takes longer.

`cases` are what is counted and timed, in the processes of one engine. `revisions` builds engines of other commits and
runs cases in pairs of their processes. `decisions` says what the figures mean; it is pure.
"""
