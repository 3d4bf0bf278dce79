"""Ways in for history: sources of job events, each turning its own world into jobs and its errors into ours.

Belongs here: the :class:`~advisor.telemetry.source.Source` protocol, its implementations (trace files,
a generated workload, the API server) and the collector that carries a source into the store.
Must not be here: SQL (``history``), features, forecasts, the cluster's present state (``cluster``).
A row that cannot be used is counted under a reason with an example; it is never fatal and never swallowed.

=================  ====================================================================
``pods``           what any live source knows of a pod and of what created it
``gangs``          jobs of pods
``kubernetes``     the API server as a source
``start_latency``  how long the nodes of a NodePool took to start
=================  ====================================================================
"""
