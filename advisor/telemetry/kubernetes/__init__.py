"""Job history from the API server: objects read through ``advisor.cluster``, turned into records of pods and creators.

Belongs here: what each kind of object tells of a job, and the source that reads them. Must not be here: the
Kubernetes client (``advisor.cluster.kubernetes``) and how jobs are made of pods (``advisor.telemetry.gangs``).

============  ====================================================================
``kinds``     which kinds of objects are read, and which of them may be missing
``asks``      what the containers of a pod, or of a template, ask for
``pods``      what is kept of a pod
``creators``  what is kept of a Job and other objects that make pods, and of their queueing
``nodes``     what is kept of a node and of a NodeClaim
``endings``   how and when a pod ended, as far as it was seen
``records``   all of it as records of pods and creators
``source``    the source
============  ====================================================================
"""
