"""One piece of work that two sources tell of is one job: known by its pods, and kept where it was told of first.

A cluster can be read through its metrics server and through its API server. No two pods in the world share a uid, so
that work with a pod in common is the same work, whatever either source calls it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TypeAlias, TypeVar

from sqlalchemy import Connection, bindparam, func, insert, select, tuple_, update

from advisor.domain.ingest import JobBatch
from advisor.domain.jobs import Job, JobIdentity, Outcome
from advisor.errors import Refused
from advisor.history.rows import COLUMNS, SOURCED, Row, job_of, row_of, to_microseconds
from advisor.history.schema import INGESTS, JOBS, PODS

__all__ = ["Kin", "kin_notes", "kin_of", "lost_kin", "tell_kin", "write_pods"]

_CHUNK = 500
_ID, _SOURCE = SOURCED.index("id"), SOURCED.index("source")
_KIN = update(JOBS).where(JOBS.c.source == bindparam("key_source"), JOBS.c.id == bindparam("key_id"))
_TELL = _KIN.values({name: bindparam(f"new_{name}") for name in (*COLUMNS, "revision") if name != "id"})

T = TypeVar("T")

Kin: TypeAlias = Mapping[str, JobIdentity]
"""The job of another source that a job of a batch is, by the id it has in the batch."""


def kin_of(connection: Connection, batch: JobBatch) -> Kin:
    """Which jobs of ``batch`` are stored already as those of another source.

    Raises:
        Refused: they are those of a source of which this one is a part, or the other way round.
    """
    others = set(connection.execute(select(INGESTS.c.source).distinct()).scalars()) - {batch.source}
    if not batch.pods or not others:
        return {}
    jobs = {job.id: job for job in batch.jobs}
    own = {row[_ID] for row in _stored(connection, [(batch.source, job_id) for job_id in jobs])}
    new = {job_id: batch.pods[job_id] for job_id in jobs if job_id not in own and job_id in batch.pods}
    owners = _owners(connection, batch.source, [uid for uids in new.values() for uid in uids])
    kin = {
        job_id: found[0] for job_id, uids in new.items() if (found := [owners[uid] for uid in uids if uid in owners])
    }
    _refuse_parts(batch.source, kin)
    _refuse_parts(batch.source, _alike(connection, batch.source, others, [jobs[job_id] for job_id in new]))
    return kin


def _owners(connection: Connection, source: str, uids: Sequence[str]) -> dict[str, JobIdentity]:
    """The stored jobs of other sources to which pods belong, by the pods' uids."""
    found: dict[str, JobIdentity] = {}
    for some in _chunks(uids):
        # A pod that is a job of its own gives it its uid: so are those known that were stored before pods were.
        named = select(JOBS.c.id, JOBS.c.source, JOBS.c.id).where(JOBS.c.id.in_(some), JOBS.c.source != source)
        told = select(PODS.c.uid, PODS.c.job_source, PODS.c.job_id).where(
            PODS.c.uid.in_(some), PODS.c.job_source != source
        )
        for query in (named, told):
            for uid, job_source, job_id in connection.execute(query):
                found[uid] = (job_source, job_id)
    stored = {(row[_SOURCE], row[_ID]) for row in _stored(connection, set(found.values()))}
    return {uid: job for uid, job in found.items() if job in stored}


def _alike(connection: Connection, source: str, others: Iterable[str], jobs: Sequence[Job]) -> Kin:
    """Jobs of a whole and of its part that share id and submission, where no pod says that they are two.

    Both call them alike. Of jobs stored by earlier versions of the program no pods are known.
    """
    family = [other for other in others if _part_of(source, other) or _part_of(other, source)]
    keys = [(other, job.id) for other in family for job in jobs]
    submits = {job.id: to_microseconds(job.submit) for job in jobs}
    same = {
        (row[_SOURCE], row[_ID])
        for row in _stored(connection, keys)
        if row[SOURCED.index("submit_us")] == submits[row[_ID]]
    }
    known: set[JobIdentity] = set()
    for some in _chunks(same):
        pairs = tuple_(PODS.c.job_source, PODS.c.job_id)
        query = select(PODS.c.job_source, PODS.c.job_id).where(pairs.in_(some)).distinct()
        known |= {(job_source, job_id) for job_source, job_id in connection.execute(query)}
    return {job_id: (other, job_id) for other, job_id in sorted(same - known)}


def _part_of(source: str, whole: str) -> bool:
    return source.startswith(f"{whole}/")


def _refuse_parts(source: str, kin: Kin) -> None:
    for job_id, (other, _) in kin.items():
        if _part_of(source, other):
            limit = f"job {job_id} is stored under {other}, which holds the jobs of every cluster of that server"
            remedy = "Read on without a cluster; or begin a history of its own for each (storage.home), by its name."
            raise Refused("source", source, limit, remedy)
        if _part_of(other, source):
            limit = f"job {job_id} is stored under {other}, so that it would be there twice"
            raise Refused("source", source, limit, f"Name the cluster as before: {other.removeprefix(source + '/')}.")


def tell_kin(connection: Connection, batch: JobBatch, kin: Kin, revision: int) -> int:
    """Let the kin of jobs of ``batch`` know what they did not, marked with ``revision``; how many did not."""
    stored = {(row[_SOURCE], row[_ID]): job_of(row) for row in _stored(connection, set(kin.values()))}
    news: dict[JobIdentity, Job] = {}
    for job in batch.jobs:
        if job.id in kin and (better := _joined(stored[kin[job.id]], job)) is not None:
            stored[kin[job.id]] = news[kin[job.id]] = better
    if news:
        values = [
            {
                "key_source": source,
                "key_id": job_id,
                "new_revision": revision,
                **{f"new_{name}": value for name, value in zip(COLUMNS, row_of(job), strict=True) if name != "id"},
            }
            for (source, job_id), job in news.items()
        ]
        connection.execute(_TELL, values)
    return len(news)


def _joined(stored: Job, told: Job) -> Job | None:
    """``stored`` with what only ``told`` says of its fate, None where that is nothing."""
    if _progress(told) <= _progress(stored):
        unmeasured = stored.usage is None and told.usage is not None and stored.end is not None
        return replace(stored, usage=told.usage) if unmeasured else None
    start, assumed = stored.start, stored.start_assumed
    if start is None and told.start is not None:
        # Clocks of two observers differ by seconds.
        start, assumed = max(told.start, stored.submit), told.start_assumed
    scheduled = told.scheduled if stored.scheduled is None else stored.scheduled
    if scheduled is not None and not (stored.submit <= scheduled and (start is None or scheduled <= start)):
        scheduled = None
    try:
        return replace(
            stored,
            scheduled=scheduled,
            start=start,
            start_assumed=assumed,
            end=None if told.end is None else max(told.end, start or stored.submit),
            outcome=told.outcome,
            last_seen=told.last_seen,
            restarts=stored.restarts if told.restarts is None else told.restarts,
            evictions=stored.evictions if told.evictions is None else told.evictions,
            paused_seconds=told.paused_seconds,
            image_pull_seconds=stored.image_pull_seconds or told.image_pull_seconds,
            usage=stored.usage or told.usage,
        )
    except Refused:
        # The two contradict each other: what was told first stands.
        return None


def _progress(job: Job) -> int:
    """How much is known of its fate: 0 waits, 1 started, 2 lost sight of, 3 ended."""
    if job.end is not None:
        return 3
    if job.outcome is Outcome.CENSORED:
        return 2
    return 0 if job.start is None else 1


def write_pods(connection: Connection, batch: JobBatch, kept: Kin) -> None:
    """Keep which job the pods of ``batch`` belong to, of those that are ``kept``, where that is not known already."""
    told = {uid: kept[job_id] for job_id, uids in batch.pods.items() if job_id in kept for uid in uids}
    for some in _chunks(told):
        mine = (PODS.c.source == batch.source) & PODS.c.uid.in_(some)
        known = set(connection.execute(select(PODS.c.uid).where(mine)).scalars())
        values = [
            {"source": batch.source, "uid": uid, "job_source": told[uid][0], "job_id": told[uid][1]}
            for uid in some
            if uid not in known
        ]
        if values:
            connection.execute(insert(PODS), values)


def lost_kin(connection: Connection, batch: JobBatch, kin: Kin, revision: int) -> int:
    """Censor jobs of other sources that this one had told of too, are open, and are no longer among all it knows."""
    mine = (PODS.c.source == batch.source) & (PODS.c.job_source != batch.source)
    pods = select(PODS.c.job_source, PODS.c.job_id).where(mine).distinct().subquery()
    joined = JOBS.join(pods, (JOBS.c.source == pods.c.job_source) & (JOBS.c.id == pods.c.job_id))
    query = select(JOBS.c.source, JOBS.c.id, JOBS.c.submit_us, JOBS.c.start_us).select_from(joined)
    read = connection.execute(select(func.max(INGESTS.c.watermark_us)).where(INGESTS.c.source == batch.source)).scalar()
    told = set(kin.values())
    lost = [
        {"key_source": source, "key_id": job, "seen": max(submit, start or submit, read or submit)}
        for source, job, submit, start in connection.execute(query.where(JOBS.c.outcome.is_(None)))
        if (source, job) not in told
    ]
    if lost:
        censored = {"outcome": str(Outcome.CENSORED), "last_seen_us": bindparam("seen"), "revision": revision}
        connection.execute(_KIN.values(censored), lost)
    return len(lost)


def kin_notes(kin: Kin) -> tuple[str, ...]:
    """Where jobs are kept that were told of before, a sentence for each source."""
    counts = Counter(source for source, _ in kin.values())
    return tuple(f"jobs kept under {source}, which told of them first: {n:,}" for source, n in sorted(counts.items()))


def _stored(connection: Connection, jobs: Iterable[JobIdentity]) -> Iterator[Row]:
    """The rows of these jobs, in the order of ``SOURCED``."""
    by_source: dict[str, list[str]] = defaultdict(list)
    for source, job_id in jobs:
        by_source[source].append(job_id)
    columns = [JOBS.c[name] for name in SOURCED]
    for source, ids in by_source.items():
        for some in _chunks(ids):
            yield from connection.execute(select(*columns).where(JOBS.c.source == source, JOBS.c.id.in_(some)))


def _chunks(values: Iterable[T]) -> Iterator[list[T]]:
    iterator = iter(values)
    while chunk := list(islice(iterator, _CHUNK)):
        yield chunk
