"""Forecasts: models that can only predict, their live state, their calibration, and the baselines beside them.

Belongs here: immutable models that load and save themselves as text and JSON, the live state that
completions reach at once, calibration, baselines under the same protocol, the registry of artefacts.
Must not be here: fitting (``training``), pickles, decisions (``planning``). Duration and demand
forecasts do not know each other.
"""
