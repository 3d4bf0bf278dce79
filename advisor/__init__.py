"""Decides: what GPU work will need, and what a cluster should do about it.

Belongs here: domain values, features, predict-only models and their registry, planning, history,
telemetry, the cluster port, the reconciler, the advice cycle and the simulator.
Must not be here: fitting (``training``), pages (``dashboards``), HTTP, command line and wiring
(``serving``). No web or command-line framework is imported below this package.
"""
