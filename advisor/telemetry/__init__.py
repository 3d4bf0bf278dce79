"""Ways in for history: sources of job events, each turning its own world into jobs and its errors into ours.

Belongs here: the :class:`~advisor.telemetry.source.Source` protocol, its implementations (trace files,
a generated workload, the API server) and the collector that carries a source into the store.
Must not be here: SQL (``history``), features, forecasts, the cluster's present state (``cluster``).
A row that cannot be used is counted under a reason with an example; it is never fatal and never swallowed.

=================  ====================================================================
``source``         the protocol
``collector``      source into store, in one transaction
``traces``         job tables in files: the known layouts, and any other by a mapping
``mapping``        whose column is what, in which unit and zone; checked before a row is read
``tables``         CSV and Parquet files as rows of text
``times``          text as moments in UTC
``interpret``      one row as one job
``openb``          the layout of the OpenB pod list
``synthetic``      a generated workload, labelled as such
``tally``          rejections by reason
``pods``           what any live source knows of a pod and of what created it
``gangs``          jobs of pods
``kubernetes``     the API server as a source
``start_latency``  how long the nodes of a NodePool took to start
=================  ====================================================================
"""
