"""The columns of the demand table said again, one sample at a time, with nothing but loops and lists."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from advisor.features.demand import DemandSeries

__all__ = ["slow_row"]

NAN = math.nan
WEEK = 7 * 24 * 60


def slow_row(series: DemandSeries, at: int) -> dict[str, float]:
    """Every declared column at one sample."""
    step, size = series.step_minutes, series.node_gpus
    demand = [float(x) / size for x in series.demand[: at + 1]]
    running = [float(x) / size for x in series.running[: at + 1]]
    pending = None if series.pending is None else [float(x) / size for x in series.pending[: at + 1]]
    changes = [NAN] + [demand[i] - demand[i - 1] for i in range(1, at + 1)]

    def back(minutes: int) -> range:
        return range(max(0, at + 1 - max(1, minutes // step)), at + 1)

    def since(events: list[bool]) -> float:
        ages = [(at - i) * step for i, event in enumerate(events) if event]
        if ages:
            return float(min(*ages, WEEK))
        return float(WEEK) if at * step >= WEEK else NAN

    def last(events: list[bool]) -> float:
        sizes = [(i, abs(changes[i])) for i, event in enumerate(events) if event]
        return sizes[-1][1] if sizes and (at - sizes[-1][0]) * step < WEEK else NAN

    def mean(values: list[float], minutes: int) -> float:
        known = [values[i] for i in back(minutes) if not math.isnan(values[i])]
        return sum(known) / len(known) if known else NAN

    def highest(minutes: int) -> float:
        return max((demand[i] for i in back(minutes) if not math.isnan(demand[i])), default=NAN)

    rises, falls = [c > 0 for c in changes], [c < 0 for c in changes]
    starts, ends = (_job_events(series, at, name, sign) for name, sign in (("job_starts", 1), ("job_ends", -1)))
    found = {
        "demand": demand[at],
        "running": running[at],
        "since_change": since([a or b for a, b in zip(rises, falls, strict=True)]),
        "since_rise": since(rises),
        "since_fall": since(falls),
        "since_job_start": since([s > 0 for s in starts]),
        "since_job_end": since([e > 0 for e in ends]),
        "last_rise": last(rises),
        "last_fall": last(falls),
        "above_mean_60_min": demand[at] - mean(demand, 60),
        "above_mean_240_min": demand[at] - mean(demand, 240),
        "below_maximum_60_min": highest(60) - demand[at],
        "below_maximum_240_min": highest(240) - demand[at],
        "below_maximum_day": highest(1440) - demand[at],
        "churn_day": mean([abs(c) for c in changes], 1440) * 60 / step,
        "churn_week": mean([abs(c) for c in changes], WEEK) * 60 / step,
        **{f"rises_{m}_min": float(sum(rises[i] for i in back(m))) for m in (5, 15, 60, 240)},
        **{f"falls_{m}_min": float(sum(falls[i] for i in back(m))) for m in (15, 60, 240)},
        **{f"job_starts_{m}_min": sum(starts[i] for i in back(m)) for m in (60, 240)},
        "job_ends_60_min": sum(ends[i] for i in back(60)),
    }
    return found | _state(series, at, demand, running, pending) | _pending(pending, since) | _clock(series, at)


def _job_events(series: DemandSeries, at: int, counted: str, sign: int) -> list[float]:
    if counted in series.state:
        return [0.0 if math.isnan(x) else float(x) for x in series.state[counted][: at + 1]]
    jobs = series.state.get("running_jobs")
    row = series.running if jobs is None else jobs
    moved = [NAN] + [sign * float(row[i] - row[i - 1]) for i in range(1, at + 1)]
    if jobs is None:
        return [1.0 if m > 0 else 0.0 for m in moved]
    return [m if m > 0 else 0.0 for m in moved]


def _state(
    series: DemandSeries, at: int, demand: list[float], running: list[float], pending: list[float] | None
) -> dict[str, float]:
    size = series.node_gpus
    idle = NAN if series.idle is None else float(series.idle[at]) / size
    capacity = running[at] + idle if series.capacity is None else float(series.capacity[at]) / size
    if series.idle is None and series.capacity is not None:
        idle = capacity - running[at]

    def row(name: str) -> float:
        return float(series.state[name][at]) if name in series.state else NAN

    return {
        "capacity": capacity,
        "idle": idle,
        "pending": NAN if pending is None else pending[at],
        "demand_of_capacity": demand[at] / capacity if capacity > 0 else NAN,
        "pending_small": row("pending_small_gpus") / size,
        "running_small": row("running_small_gpus") / size,
        "running_jobs": row("running_jobs"),
        "pending_jobs": row("pending_jobs"),
        "mean_job_size": running[at] / row("running_jobs") if row("running_jobs") > 0 else NAN,
    }


def _pending(pending: list[float] | None, since: Any) -> dict[str, float]:
    if pending is None:
        return {"since_nothing_pending": NAN, "since_anything_pending": NAN}
    return {
        "since_nothing_pending": since([p == 0 for p in pending]),
        "since_anything_pending": since([p > 0 for p in pending]),
    }


def _clock(series: DemandSeries, at: int) -> dict[str, float]:
    if not series.calendar_known:
        return {"hour": NAN, "weekday": NAN}
    local = datetime.fromtimestamp(int(series.unix[at]), UTC).astimezone(ZoneInfo(series.zone))
    return {"hour": local.hour + local.minute / 60 + local.second / 3600, "weekday": float(local.weekday())}
