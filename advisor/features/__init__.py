"""Features: what was known about a job, or a pool, at the moment somebody asked.

Belongs here: features declared as data (:mod:`~advisor.features.table`), and incremental states that
answer them online, in training and in replay through one and the same code.
Must not be here: I/O, settings, a clock, models, and anything that learns of an end before it happened.
A row asked for at t is the same whatever happens after t.
"""
