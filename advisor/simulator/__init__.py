"""Replays of a history under a policy: what would have been waited for and paid.

Belongs here: the engine, the simulated cluster with its billing, the policies compared in it, and the laws
of conservation that every run must keep. Must not be here: reading histories (telemetry), fitting
(training; what is foreseen arrives as rows made beforehand), and comparing runs (training too).

==============  =====================================================================
``engine``      (time, priority, sequence, event) and a clock; knows nothing of GPUs
``terms``       nodes, their starts, keep-alive, limits, billing
``tasks``       jobs as the world brings them, and how far they have come
``nodes``       what is free on a node, and what its time was spent on
``cluster``     launches, readiness, emptiness, starts and stops
``accounts``    paid = used + idle + booting, and every other law
``foresight``   what a policy knows of durations
``policies``    who goes where, what is launched, what may go
``simulation``  one run
==============  =====================================================================
"""
