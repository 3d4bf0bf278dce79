"""The guide: Markdown pages, the configuration of their site, and the generators of its reference.

Belongs here: pages, images, ``conf.py``, ``generators``. Must not be here: anything the product
imports; the guide reads the product, never the other way round.
"""
