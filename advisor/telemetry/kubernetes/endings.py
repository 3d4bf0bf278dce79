"""How a pod ended and when, as far as somebody saw it."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from advisor.cluster.reflector import Held
from advisor.domain.jobs import Outcome
from advisor.telemetry.kubernetes.pods import PodObject
from advisor.telemetry.pods import TAKEN_BY_THE_SYSTEM

__all__ = ["Ending", "ending_of"]


class Ending(NamedTuple):
    """End and outcome, or outcome censored and up to when it is known to have lived; all None while it lives."""

    ended: datetime | None = None
    outcome: Outcome | None = None
    last_seen: datetime | None = None


def ending_of(held: Held[PodObject]) -> Ending:
    """The end of a pod.

    Its own phase counts first; a pod that was deleted before it had ended was cancelled, at the latest when it was to
    be gone. One that went while nobody watched is known to have lived until it was last seen, and no more.
    """
    pod = held.value
    taken = pod.disrupted is not None or pod.reason in TAKEN_BY_THE_SYSTEM
    if pod.phase == "Succeeded":
        return _closed(pod, pod.finished, Outcome.COMPLETED, held)
    if pod.phase == "Failed":
        if taken:
            return _lost(pod, pod.finished or pod.disrupted or held.seen)
        asked = pod.delete_asked
        stopped = asked is not None and (pod.finished is None or pod.finished >= asked)
        return _closed(pod, pod.finished, Outcome.CANCELLED if stopped else Outcome.FAILED, held)
    if pod.reason == "NodeLost":
        return _lost(pod, pod.disrupted or pod.delete_asked or held.seen)
    if held.there:
        return Ending()
    return _cut_short(pod, held, taken=taken)


def _cut_short(pod: PodObject, held: Held[PodObject], *, taken: bool) -> Ending:
    """Of a pod that went while it waited or ran."""
    told = [moment for moment in (pod.deleted, held.gone) if moment is not None]
    if taken:
        return _lost(pod, min(told, default=held.seen))
    if held.gone is not None:
        return _closed(pod, min(told), Outcome.CANCELLED, held)
    if pod.deleted is not None:
        # Somebody had asked for it, so it went when it had to, or later if it was still seen then.
        return _closed(pod, max(pod.deleted, held.seen), Outcome.CANCELLED, held)
    return _lost(pod, held.seen)


def _closed(pod: PodObject, ended: datetime | None, outcome: Outcome, held: Held[PodObject]) -> Ending:
    if ended is None:
        return _lost(pod, pod.disrupted or held.seen)
    return Ending(ended=max(ended, pod.started or pod.created), outcome=outcome)


def _lost(pod: PodObject, seen: datetime) -> Ending:
    return Ending(outcome=Outcome.CENSORED, last_seen=max(seen, pod.started or pod.created))
