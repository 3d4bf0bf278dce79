"""Learns and measures: fits models, calibrates them, replays history to see how good they would have been.

Belongs here: fit functions that return the immutable models of :mod:`advisor.forecast`, metrics,
backtests that return reports, and what publishes a model that earned it.
Must not be here: anything the online path needs, web or command-line frameworks, printing.
"""
