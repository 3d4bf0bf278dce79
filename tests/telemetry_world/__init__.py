"""Worlds of GPU work whose truth is known, and what a Prometheus and an API server would have told of them.

A world is drawn from a seed: nodes, pods, Jobs and what the GPUs did. :mod:`.exposition` shows it as a
Prometheus would keep it, in one of six dialects of sharing and of dcgm-exporter, and :mod:`.api_objects` as its
API server would; :mod:`.observer` says what the best reader could know of it from either. Nothing here reads
telemetry, and nothing imports the code that does.
"""
