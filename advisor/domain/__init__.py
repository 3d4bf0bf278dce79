"""Values only: what a cluster operator would call things, frozen and checked once.

Belongs here: frozen dataclasses with units in their names, and small questions about themselves.
Must not be here: I/O, pandas, pydantic, settings, a clock, prices. Unknown is ``None`` with a
documented meaning, never -1, NaN or "?". Every time is UTC-aware.

======================  ==========================================================
``units``               UTC, durations as people write them
``jobs``                :class:`~advisor.domain.jobs.Job` and its outcome
``accounts``            how a source came to what it says of a job
``gpus``                GPU shares
``asks``                what a pod asks for, in physical GPUs
``slices``              slice lengths, slices, slice plans, allocations
``nodepools``           NodePools, nodes and the cluster snapshot
``forecasts``           duration and demand distributions
``promises``            what was promised to jobs, and how it was kept
``plans``               warm plans, changes, advice
``decisions``           what became of each change: the ledger's entries
``reports``             measured quality
======================  ==========================================================
"""
