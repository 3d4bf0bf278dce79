"""Who gets which slices now: every request ends placed, deferred until a time, or refused, and says why.

Requests are served in order (urgent, then shortest with ageing), and for each the first of these that works:

1. **idle shares**, on the node whose life it extends least;
2. **a gap** that a waiting gang leaves until its other GPUs are free, if it is expected to end before;
3. **a batch**: a tiny task joins the slice of another, where the sum of both stays within it;
4. otherwise it is **deferred**: to a node that is coming, to one that should be started, or to a release.

Where nodes cannot be added the first blocked gang of a pool reserves the GPUs that will be free earliest, so
that small work does not starve it; later gangs only get an estimate. Same input, same answer: every tie
has a stated key. One more idle GPU never unplaces the first request; fewer requests placed in all is possible,
since a large one that now fits may take what several small ones had.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from advisor.domain.forecasts import DurationDistribution
from advisor.domain.nodepools import ClusterSnapshot
from advisor.domain.slices import Allocation, SlicePlan, SliceRequest
from advisor.domain.units import utc
from advisor.errors import Refused
from advisor.planning.allocation_session import AllocationSession
from advisor.planning.allocation_terms import AllocationTerms
from advisor.planning.fleet import Outlook
from advisor.planning.grants import Task
from advisor.planning.request_order import in_order

__all__ = ["allocate"]


def allocate(
    snapshot: ClusterSnapshot,
    requests: Sequence[SliceRequest],
    plans: Mapping[str, SlicePlan],
    terms: AllocationTerms,
    now: datetime,
    remaining: Mapping[str, DurationDistribution] | None = None,
) -> tuple[Allocation, ...]:
    """One decision for each request, in the order they were given.

    ``plans`` are slice plans by pool, ``remaining`` the remaining durations of running workloads by their id
    (as of now; a workload left out is one of unknown end). Workloads that wait in the snapshot are not
    served unless they are among ``requests``.

    Raises:
        Refused: two requests of one id.
    """
    seen: set[str] = set()
    for request in requests:
        if request.id in seen:
            raise Refused("requests", request.id, "ids of requests are unique", "Ask once for each task.")
        seen.add(request.id)
    session = AllocationSession.begin(snapshot, Outlook(utc(now, "now"), terms, remaining or {}))
    tasks = [Task(request, terms, plans) for request in in_order(requests, terms.ageing_days)]
    decided = {task.request.id: session.decide(task) for task in tasks}
    decided.update({allocation.request_id: allocation for allocation in session.estimate_postponed()})
    return tuple(decided[request.id] for request in requests)
