"""The order in which requests are served: urgent first, then the shortest, with ageing so that nobody starves."""

from __future__ import annotations

import math
from collections.abc import Iterable

from advisor.domain.slices import SliceRequest
from advisor.domain.units import SECONDS_PER_DAY

__all__ = ["in_order", "order_key"]


def order_key(request: SliceRequest, ageing_days: float) -> tuple[bool, float, str]:
    """Smaller is served earlier: not urgent, then ln of the median duration plus the submission over tau, then id.

    Only differences of submissions matter: one that came tau earlier stands level with one e times
    shorter. Of all indices tried (mean, Gittins, total size, weighted by GPUs) the median waits least.
    """
    age = request.submit.timestamp() / (ageing_days * SECONDS_PER_DAY)
    return (not request.urgent, math.log(request.duration.median) + age, request.id)


def in_order(requests: Iterable[SliceRequest], ageing_days: float) -> list[SliceRequest]:
    """The requests in the order they are served."""
    return sorted(requests, key=lambda request: order_key(request, ageing_days))
