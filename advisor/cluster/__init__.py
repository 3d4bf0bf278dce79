"""The cluster as a port: what was seen of it, and the few things that may be written to it.

Belongs here: the protocol, its implementations, and how Kubernetes writes things down (quantities,
field names, managed fields). Must not be here: what *should* be written (``reconciler``), forecasts,
prices, or a clock of its own. Only :mod:`advisor.cluster.kubernetes` imports the Kubernetes client,
and it is imported by nobody here, since the client alone takes longer to load than all the rest.

===============  ================================================================
``port``         what any cluster answers and accepts
``fields``       the NodePool fields that may be written, and their shapes
``quantities``   resource quantities as Kubernetes reads them
``memory``       a cluster in memory with the API server's observable behaviour
``description``  a cluster described in a TOML file, or assumed from the history
``tables``       TOML tables read strictly
``objects``      the port to objects of any kind: lists, watches, and what they may raise
``reflector``    one kind kept current by a list and a watch
``documents``    objects as JSON, read without trusting their shape
``projection``   Kubernetes objects as JSON, one by one, turned into what was seen
``assembly``     what was seen, put together into a snapshot
``kubernetes``   the real one
===============  ================================================================
"""
