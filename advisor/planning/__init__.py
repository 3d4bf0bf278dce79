"""Decisions: pure functions from what was seen and foreseen to plans that carry their reasons.

Belongs here: choosing slice lengths, granting slices, sizing warm capacity and limits, and every
price. Must not be here: I/O, settings, a clock (time is an argument), features, fitted models: what
is foreseen arrives as the distributions of :mod:`advisor.domain.forecasts`. Bounds that may refuse an
*action* are guards and live with the reconciler; here are only the reasons for wanting one.

=======================  =========================================================================
``costs``                the only file that multiplies by a price
``durations``            how long a pool's tasks last: weighted distributions, grouped and summed
``slice_terms``          what a slice length depends on besides durations, checked once
``slice_objective``      what a slice length costs, exactly and in closed form
``slice_bounds``         which lengths are allowed, and which rule forbids the others
``slice_quantum``        whether to slice at all (Gittins index with set-up cost)
``slice_classes``        one to three lengths in one pool
``slice_length``         the slice plan of a pool
``slice_reasons``        why a length was chosen, in sentences
``allocation_terms``     what an allocation depends on besides cluster and requests
``request_order``        urgent first, then shortest with ageing
``eligibility``          requests that can never be placed, and where the others may go
``fleet``                shares over time, the working state of one allocation
``placement``            which node: expected extension of its life, then best fit
``grants``               consecutive slices for one task
``batches``              tiny tasks that share one slice
``deferral``             when a request that does not fit now will
``allocation_session``   requests served one by one, against what is left
``allocator``            every request placed, deferred or refused
``warm_capacity``        nodes to have ready, and how long an idle one stays
``limits``               the GPU limit in whole nodes
``sharing``              how many shares a GPU is cut into
``advice``               all of it for one pool
=======================  =========================================================================
"""
