"""What happened: jobs, what was left out of them, the advice given and the actions decided. The only SQL.

Belongs here: the store, its tables and migrations, and the immutable snapshots that training reads.
Must not be here: reading files or live systems (``telemetry``), features, decisions, a clock. Every
read takes the time as of which it answers, so no caller sees the future by accident.

================  ====================================================================
``store``         :class:`~advisor.history.store.HistoryStore`, the verbs
``appending``     one batch of jobs into the store, all or nothing
``reading``       jobs as they were known at a time
``kin``           work that two sources tell of, kept once
``saying``        how far sources were read, what was dropped and assumed, without growing for ever
``starts``        how long nodes took to start
``status``        what is stored, and what was dropped and why
``ledger``        decisions and advice
``rows``          a job as one row of numbers and text, shared by store and snapshot
``schema``        the tables; ``migrations`` builds them, ``database`` connects
``snapshot``      jobs as one immutable Parquet file; needs no database
================  ====================================================================
"""
