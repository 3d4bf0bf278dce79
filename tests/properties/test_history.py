"""What holds for any job: it survives the store and a snapshot, and the future never changes what was known."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.ingest import JobBatch
from advisor.domain.jobs import TOLD_BY_NODES, Job, Outcome
from advisor.domain.usage import ComputeSource, GpuUsage
from advisor.history.snapshot import read_snapshot, write_snapshot
from advisor.history.store import HistoryStore

MICROSECOND = timedelta(microseconds=1)
LAST = datetime(2099, 1, 1, tzinfo=UTC)
TEXT = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
GAPS = st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=400))
NUMBERS = st.none() | st.floats(min_value=0, max_value=1e6, allow_nan=False)
ANY_TIME = st.datetimes(min_value=datetime(1960, 1, 1), max_value=datetime(2090, 1, 1))  # noqa: DTZ001 - made aware below
COUNTS = st.none() | st.integers(min_value=-(2**63), max_value=2**63 - 1)
SHARES = st.none() | st.floats(min_value=0, max_value=1)
TIMES_OVER = st.none() | st.integers(min_value=0, max_value=2**63 - 1)
USAGES = st.none() | st.builds(
    GpuUsage,
    compute_mean=SHARES,
    compute_p95=SHARES,
    compute_peak=SHARES,
    compute_source=st.sampled_from(ComputeSource),
    memory_peak_bytes=NUMBERS,
    energy_joules=NUMBERS,
    idle_share=SHARES,
    estimated=st.booleans(),
)


@cache
def migrated() -> tempfile.TemporaryDirectory[str]:
    """A folder with an empty store: copying it is far faster than migrating anew for every example."""
    folder = tempfile.TemporaryDirectory()
    HistoryStore.open(f"sqlite:///{folder.name}/history.db").close()
    return folder


@contextmanager
def a_store() -> Iterator[HistoryStore]:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(f"{migrated().name}/history.db", folder)
        with HistoryStore.open(f"sqlite:///{folder}/history.db") as store:
            yield store


def between(first: datetime, last: datetime) -> st.SearchStrategy[datetime]:
    return st.integers(0, (last - first) // MICROSECOND).map(lambda count: first + count * MICROSECOND)


@st.composite
def jobs(draw: st.DrawFn, times: st.SearchStrategy[datetime] = ANY_TIME) -> Job:
    """Any job in any state of its life."""
    submit = draw(times).replace(tzinfo=UTC, fold=0)
    start = submit + draw(GAPS)
    later = start + draw(GAPS)
    state = draw(st.sampled_from(["waiting", "running", "ended", "given up", "lost"]))
    life: dict[str, object] = {
        "waiting": {},
        "running": {"start": start, "last_seen": draw(st.none() | st.just(later))},
        "ended": {"start": start, "end": later, "outcome": draw(st.sampled_from(list(Outcome)[:3]))},
        "given up": {"end": later, "outcome": Outcome.CANCELLED},
        "lost": {"start": start, "last_seen": later, "outcome": Outcome.CENSORED},
    }[state]
    until = life.get("start", life.get("end", later))
    gone = (life.get("end") or life.get("last_seen")) is not None
    scheduled = draw(st.none() | between(submit, until))
    placed = scheduled is not None or "start" in life
    texts = {name: draw(TEXT) for name in ("user", "namespace", "name", "image", "gpu_kind", "pool", "created_by")}
    return Job(
        id=draw(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)),
        submit=submit,
        gpus=draw(st.floats(min_value=1e-6, max_value=1e6)),
        cpus=draw(NUMBERS),
        time_limit_seconds=draw(NUMBERS | st.just(float("inf"))),
        nodes=draw(COUNTS),
        priority=draw(COUNTS),
        start_assumed=draw(st.booleans()),
        calendar_known=draw(st.booleans()),
        scheduled=scheduled,
        restarts=draw(TIMES_OVER) if gone else None,
        evictions=draw(TIMES_OVER) if gone else None,
        paused_seconds=draw(st.floats(0.0, (until - start).total_seconds())) if state in ("ended", "lost") else 0.0,
        image_pull_seconds=draw(NUMBERS) if "start" in life else None,
        usage=draw(USAGES) if gone else None,
        told_by_node=draw(st.sampled_from([(), ("nodes",), TOLD_BY_NODES])) if placed else (),
        **texts,
        **life,
    )


@given(st.lists(jobs(), max_size=6, unique_by=lambda job: job.id))
def test_any_job_survives_the_store(some):
    with a_store() as store:
        store.append(JobBatch(source="test", jobs=tuple(some)), LAST)
        assert store.jobs(LAST) == sorted(some, key=lambda job: (job.submit, job.id))


@given(st.lists(jobs(), max_size=6))
def test_any_job_survives_a_snapshot(some):
    with tempfile.TemporaryDirectory() as folder:
        snapshot = write_snapshot(some, Path(folder))
        assert sorted(map(repr, read_snapshot(snapshot.path))) == sorted(map(repr, some))


WITHIN_DAYS = st.datetimes(min_value=datetime(2026, 1, 1), max_value=datetime(2026, 1, 9))  # noqa: DTZ001 - made aware below


def deleted_future(job: Job, now: datetime) -> Job | None:
    """What an observer who stopped looking at ``now`` would have written down, spelt out state by state."""
    if job.submit > now:
        return None
    seen = {name: getattr(job, name) for name in Job.__dataclass_fields__}
    gone = job.end or job.last_seen
    if gone is None or gone > now:
        seen.update(end=None, outcome=None, last_seen=None, usage=None, restarts=None)
        placed = job.scheduled or job.start
        if placed is None or placed > now:
            seen.update(dict.fromkeys(job.told_by_node), told_by_node=())
        if job.scheduled is not None and job.scheduled > now:
            seen.update(scheduled=None)
        if job.start is None or job.start > now:
            seen.update(start=None, image_pull_seconds=None)
    return Job(**seen)


@given(st.lists(jobs(WITHIN_DAYS), max_size=8, unique_by=lambda job: job.id), WITHIN_DAYS)
def test_deleting_the_future_changes_no_answer(some, moment):
    now = moment.replace(tzinfo=UTC)
    known = [job for job in (deleted_future(job, now) for job in some) if job is not None]
    with a_store() as whole, a_store() as cut:
        whole.append(JobBatch(source="test", jobs=tuple(some)), LAST)
        cut.append(JobBatch(source="test", jobs=tuple(known)), LAST)
        day = timedelta(days=1)
        assert whole.jobs(now) == cut.jobs(now)
        assert whole.jobs(now, since=now - day) == cut.jobs(now, since=now - day)
        assert whole.running_at(now) == cut.running_at(now)
        assert whole.finished_between(now - day, now) == cut.finished_between(now - day, now)
        assert whole.last_event(now) == cut.last_event(now)


@given(st.lists(jobs(WITHIN_DAYS), max_size=8, unique_by=lambda job: job.id), st.randoms(use_true_random=False))
def test_watching_jobs_grow_ends_where_reading_them_once_does(some, random):
    with a_store() as once, a_store() as watched:
        once.append(JobBatch(source="test", jobs=tuple(some)), LAST)
        for hours in range(0, 24 * 8, 48):
            now = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=hours)
            seen = [known for known in (job.as_of(now) for job in some) if known is not None]
            random.shuffle(seen)
            watched.append(JobBatch(source="test", jobs=tuple(seen)), now)
        watched.append(JobBatch(source="test", jobs=tuple(some)), LAST)
        assert watched.jobs(LAST) == once.jobs(LAST)
