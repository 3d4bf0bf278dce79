"""Finds the job in the store that a reading took for another, since it no longer saw its beginning.

An object that tells nothing of itself is known by its pods: which of several of one name it is, is told by when the
first of them was created. Once that pod is no longer told of, the same object seems to have been created later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple, TypeAlias

from sqlalchemy import Connection, select

from advisor.domain.accounts import NAME_IS_FREE_AFTER
from advisor.domain.jobs import Job
from advisor.history.merging import Known
from advisor.history.rows import from_microseconds, to_microseconds
from advisor.history.schema import JOBS

__all__ = ["with_stored_beginnings"]

_AT_A_TIME = 500

_Object: TypeAlias = tuple[str | None, str]
"""The namespace of what made the pods of a job, and its kind and name."""


class _Stored(NamedTuple):
    """A stored job: when it was submitted, and until when pods of it are known, None while there are."""

    id: str
    submit: datetime
    until: datetime | None


def with_stored_beginnings(
    connection: Connection, source: str, found: Sequence[Known], back_to: datetime | None
) -> list[Known]:
    """``found``, where those that are the last part of a stored job have its id and submission.

    ``back_to`` is from when on the reading knows every pod; None where it knows jobs whole.
    """
    if back_to is None:
        return list(found)
    limit = back_to + NAME_IS_FREE_AFTER
    cut = [each for each in found if each.account.by_its_pods and each.job.created_by and each.job.submit <= limit]
    stored = _stored(connection, source, {str(each.job.created_by) for each in cut}, limit)
    begun: dict[str, _Stored] = {}
    taken: set[str] = set()
    for each in sorted(cut, key=lambda known: known.job.submit):
        match = _match(each.job, stored.get((each.job.namespace, str(each.job.created_by)), ()))
        if match is not None and match.id not in taken:
            taken.add(match.id)
            begun[each.job.id] = match
    return [_begun(each, begun.get(each.job.id)) for each in found]


def _match(job: Job, stored: Sequence[_Stored]) -> _Stored | None:
    """The one among jobs of the same object, oldest first, of which ``job`` is the last part or the whole."""
    of_its_time = [
        each
        for each in stored
        if each.submit <= job.submit and (each.until is None or job.submit <= each.until + NAME_IS_FREE_AFTER)
    ]
    return of_its_time[-1] if of_its_time else None


def _begun(known: Known, stored: _Stored | None) -> Known:
    return known if stored is None else replace(known, job=replace(known.job, id=stored.id, submit=stored.submit))


def _stored(
    connection: Connection, source: str, makers: set[str], limit: datetime
) -> Mapping[_Object, Sequence[_Stored]]:
    """Jobs of these makers of pods, submitted by ``limit``, oldest first."""
    names = ("id", "submit_us", "end_us", "last_seen_us", "outcome", "namespace", "created_by")
    columns = [JOBS.c[name] for name in names]
    found: dict[_Object, list[_Stored]] = defaultdict(list)
    wanted = sorted(makers)
    for first in range(0, len(wanted), _AT_A_TIME):
        mine = (JOBS.c.source == source) & (JOBS.c.submit_us <= to_microseconds(limit))
        some = JOBS.c.created_by.in_(wanted[first : first + _AT_A_TIME])
        query = select(*columns).where(mine, some).order_by(JOBS.c.submit_us)
        for job, submit, end, last_seen, outcome, namespace, maker in connection.execute(query):
            until = None if outcome is None else (last_seen if end is None else end)
            moment = None if until is None else from_microseconds(until)
            found[namespace, maker].append(_Stored(job, from_microseconds(submit), moment))
    return found
