"""Measured speed, as ratios within one run; code only, never results.

Belongs here: one ``bench_*.py`` a subject, each with a ``main()`` that prints what it measured, beside
what. Must not be here: anything that tests or the product import.
"""
