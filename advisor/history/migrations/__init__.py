"""How the tables came to be, one Alembic revision a file; shipped with the package and run when a store is opened.

Belongs here: revisions, which never change once released. Must not be here: imports of ``schema``,
whose tables are those of today and not of the revision.
"""
