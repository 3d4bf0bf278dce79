"""Writes the reference pages from the code, so that they cannot say anything else than the code does.

Belongs here: one module per page, each with one pure function that returns the page as Markdown,
and the table of pages in ``pages``. Must not be here: prose that explains (``docs/explanation``).
``python -m docs.generators`` writes every page, ``--check`` only says which are stale.
"""
