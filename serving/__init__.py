"""Every way in: command line, HTTP API, controller loop, and the one place that wires objects together.

Belongs here: parsing, wiring, rendering. Must not be here: decisions (``advisor``), fitting
(``training``), page contexts (``dashboards``). Only ``serving.cli`` may reach ``training``.
"""
