"""One batch of jobs into the store: what is new, what has changed, and what has to be left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice

from sqlalchemy import Connection, bindparam, func, insert, select, update

from advisor.domain.ingest import JobBatch, Rejection
from advisor.domain.jobs import Job, Outcome
from advisor.errors import Refused
from advisor.history.kin import kin_notes, kin_of, lost_kin, tell_kin, write_pods
from advisor.history.reading import revision
from advisor.history.rows import COLUMNS, USAGE_COLUMNS, Row, from_microseconds, row_of
from advisor.history.saying import record_ingest
from advisor.history.schema import INGESTS, JOBS
from advisor.history.starts import write_starts

__all__ = ["AppendResult", "Progress", "append_batch"]

Progress = Callable[[int, int], None]
"""Told how many rows of how many are done."""

_CHUNK = 2000
_ID, _SUBMIT, _START, _END, _LAST_SEEN = (
    COLUMNS.index(name) for name in ("id", "submit_us", "start_us", "end_us", "last_seen_us")
)
_MEASURED = slice(-len(USAGE_COLUMNS), None)
_VALUES = [JOBS.c[name] for name in COLUMNS]
# The statement's own names for values and keys must differ where a column is both.
_UPDATE = (
    update(JOBS)
    .where(JOBS.c.source == bindparam("key_source"), JOBS.c.id == bindparam("key_id"))
    .values({name: bindparam(f"new_{name}") for name in (*COLUMNS, "revision") if name != "id"})
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendResult:
    """What one batch did to the store: jobs added, jobs that became better known, jobs known already.

    ``rejections`` are jobs the store itself refused, one by one: those whose id belongs to another job; ``notes`` say
    which are kept elsewhere.
    """

    added: int
    changed: int
    unchanged: int
    rejections: tuple[Rejection, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Sorted:
    """The rows of one batch by what has to be done with them; those written are marked with ``revision``."""

    source: str
    revision: int
    new: list[Row] = field(default_factory=list)
    changed: list[Row] = field(default_factory=list)
    unchanged: int = 0
    strangers: int = 0
    first_stranger: str = ""

    def sort(self, row: Row, stored: Row | None) -> None:
        """Put ``row`` where it belongs, given what is ``stored`` under its id."""
        if stored is None:
            self.new.append(row)
        elif row[_SUBMIT] != stored[_SUBMIT]:
            self.strangers += 1
            self.first_stranger = self.first_stranger or (
                f"id {row[_ID]!r} was submitted at {from_microseconds(stored[_SUBMIT]).isoformat()}, "
                f"now at {from_microseconds(row[_SUBMIT]).isoformat()}"
            )
        elif (
            _known(row) < _known(stored)
            or _seen_before(row, stored)
            or (kept := _with_measurements(row, stored)) == stored
        ):
            self.unchanged += 1
        else:
            self.changed.append(kept)

    @property
    def rejections(self) -> tuple[Rejection, ...]:
        """The jobs whose id is taken, as one rejection."""
        if not self.strangers:
            return ()
        return (Rejection(reason="id_of_another_job", count=self.strangers, example=self.first_stranger),)


def append_batch(
    connection: Connection, batch: JobBatch, now: datetime, progress: Progress | None = None
) -> AppendResult:
    """Write ``batch`` into the open transaction; see :meth:`advisor.history.store.HistoryStore.append`."""
    if batch.jobs:
        _refuse_mixture(connection, batch)
    kin = kin_of(connection, batch)
    rows = _latest([job for job in batch.jobs if job.id not in kin])
    empty = connection.execute(select(JOBS.c.id).where(JOBS.c.source == batch.source).limit(1)).first() is None
    added = changed = unchanged = 0
    # Whoever has seen the revision before has not seen this batch: any number above it says so.
    work = _Sorted(batch.source, revision(connection) + 1)
    for done, chunk in _chunks(rows):
        stored = {} if empty else _stored(connection, batch.source, [row[_ID] for row in chunk])
        work.new, work.changed = [], []
        for row in chunk:
            work.sort(row, stored.get(row[_ID]))
        _write(connection, work)
        added, changed = added + len(work.new), changed + len(work.changed)
        if progress is not None:
            progress(done, len(rows))
    better = tell_kin(connection, batch, kin, work.revision)
    changed, unchanged = changed + better, work.unchanged + len(kin) - better
    write_pods(connection, batch, kin)
    if batch.whole:
        changed += _lose(connection, work, {row[_ID] for row in rows})
        changed += lost_kin(connection, batch, kin, work.revision)
    notes = kin_notes(kin)
    result = AppendResult(added=added, changed=changed, unchanged=unchanged, rejections=work.rejections, notes=notes)
    write_starts(connection, batch.source, batch.starts)
    counts = (added, changed, unchanged)
    said = replace(batch, notes=(*batch.notes, *notes))
    record_ingest(connection, said, (*batch.rejections, *result.rejections), counts, now)
    return result


def _lose(connection: Connection, work: _Sorted, told: set[str]) -> int:
    """Censor what was open and is not ``told`` of any more, at the moment up to which its source was read; how many."""
    mine = (JOBS.c.source == work.source) & JOBS.c.outcome.is_(None)
    open_jobs = connection.execute(select(JOBS.c.id, JOBS.c.submit_us, JOBS.c.start_us).where(mine)).all()
    read = connection.execute(select(func.max(INGESTS.c.watermark_us)).where(INGESTS.c.source == work.source)).scalar()
    lost = [
        {"key_id": job, "seen": max(submit, start or submit, read or submit)}
        for job, submit, start in open_jobs
        if job not in told
    ]
    if lost:
        censored = {"outcome": str(Outcome.CENSORED), "last_seen_us": bindparam("seen"), "revision": work.revision}
        key = (JOBS.c.source == work.source) & (JOBS.c.id == bindparam("key_id"))
        connection.execute(update(JOBS).where(key).values(censored), lost)
    return len(lost)


def _known(row: Row) -> int:
    """How much is known of a job: 0 waiting, 1 started, 2 ended. What is known is never unlearned."""
    if row[_END] is not None:
        return 2
    return 0 if row[_START] is None else 1


def _seen_before(row: Row, stored: Row) -> bool:
    """Whether a job without a known end was seen later already than ``row`` says: an older reading, told late."""
    seen, before = row[_LAST_SEEN], stored[_LAST_SEEN]
    return row[_END] is None and seen is not None and before is not None and seen < before


def _with_measurements(row: Row, stored: Row) -> Row:
    """``row``, with what was measured of the ended job where it is told again without: metrics age sooner than jobs."""
    if row[_END] is None or row[_END] != stored[_END] or any(value is not None for value in row[_MEASURED]):
        return row
    return (*row[: _MEASURED.start], *stored[_MEASURED])


def _latest(jobs: Iterable[Job]) -> list[Row]:
    """One row per id; of several the last that knows no less than those before it."""
    latest: dict[str, Row] = {}
    for job in jobs:
        row = row_of(job)
        before = latest.get(job.id)
        if before is None or _known(row) >= _known(before):
            latest[job.id] = row
    return list(latest.values())


def _chunks(rows: Sequence[Row]) -> Iterable[tuple[int, list[Row]]]:
    iterator = iter(rows)
    done = 0
    while chunk := list(islice(iterator, _CHUNK)):
        done += len(chunk)
        yield done, chunk


def _stored(connection: Connection, source: str, ids: list[str]) -> dict[str, Row]:
    query = select(*_VALUES).where(JOBS.c.source == source, JOBS.c.id.in_(ids))
    return {row[_ID]: tuple(row) for row in connection.execute(query)}


def _write(connection: Connection, work: _Sorted) -> None:
    if work.new:
        mark = {"source": work.source, "revision": work.revision}
        values = [{**mark, **dict(zip(COLUMNS, row, strict=True))} for row in work.new]
        connection.execute(insert(JOBS), values)
    if work.changed:
        renamed = [f"new_{name}" for name in COLUMNS]
        mark = {"key_source": work.source, "new_revision": work.revision}
        values = [{**mark, "key_id": row[_ID], **dict(zip(renamed[1:], row[1:], strict=True))} for row in work.changed]
        connection.execute(_UPDATE, values)


def _refuse_mixture(connection: Connection, batch: JobBatch) -> None:
    kinds = set(connection.execute(select(INGESTS.c.synthetic).where(INGESTS.c.added > 0).distinct()).scalars())
    if kinds and batch.synthetic not in kinds:
        held, come = ("generated", "real") if True in kinds else ("real", "generated")
        raise Refused(
            "source",
            batch.source,
            f"the store holds {held} jobs, and {come} ones must not be mixed with them",
            "Use another store, for instance another storage.home.",
        )
