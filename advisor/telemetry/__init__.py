"""Ways in for history: sources of job events, each turning its own world into jobs and its errors into ours.

Belongs here: the :class:`~advisor.telemetry.source.Source` protocol, its implementations (trace files,
a generated workload) and the collector that carries a source into the store.
Must not be here: SQL (``history``), features, forecasts, the cluster's present state (``cluster``).
A row that cannot be used is counted under a reason with an example; it is never fatal and never swallowed.

================  ====================================================================
``source``        the protocol
``collector``     source into store, in one transaction
``traces``        job tables in files: the known layouts, and any other by a mapping
``mapping``       whose column is what, in which unit and zone; checked before a row is read
``tables``        CSV and Parquet files as rows of text
``times``         text as moments in UTC
``interpret``     one row as one job
``slurm``         accounting of Slurm; ``slurm_table`` its lines, ``slurm_lines`` what a line says, ``slurm_fields``
                  its small languages, ``slurm_arrays`` ids and arrays, ``slurm_runs`` runs as jobs
``openb``         the layout of the OpenB pod list
``synthetic``     a generated workload, labelled as such
``prometheus``    the metrics server: its HTTP API, and what is read of it
``tally``         rejections by reason
``dcgm``          the GPU metrics of dcgm-exporter, as one value per device and moment
================  ====================================================================
"""
