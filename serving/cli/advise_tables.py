"""Advice as a person reads it in a terminal of 80 columns: one table, then each pool's changes and reasons, once."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table

from advisor.domain.plans import Advice, Change, PoolAdvice
from advisor.domain.slices import SliceClass
from advisor.domain.units import SECONDS_PER_MINUTE, shown_duration
from advisor.reconciler.patches import to_yaml
from advisor.settings import Settings
from serving.cli.output import minute, table

__all__ = ["advice_tables"]

_COLUMNS = ("pool", "class", "slice", "in use", "warm GPUs", "keep-alive", "GPU limit")


def advice_tables(advice: Advice, settings: Settings, *, manifests: bool = True) -> list[Table | str]:
    """The advice: what to set in each pool, why, and with ``manifests`` the YAML to apply."""
    label = " [SYNTHETIC workload]" if advice.synthetic else ""
    title = f"advice as of {minute(advice.time)} UTC, mode {advice.mode}{label}"
    parts: list[Table | str] = [table(title, _COLUMNS, [row for pool in advice.pools for row in _rows(pool)])]
    if advice.cluster_assumed:
        parts.append("in use: assumed, since no cluster was described that could tell")
    for pool in advice.pools:
        parts += _about(pool)
    parts += _bullets([*map(str, advice.without_advice), *advice.reasons])
    parts.append(f"prices: {settings.prices.per_gpu_hour:g} {settings.prices.currency} per GPU-hour (settings)")
    if manifests:
        parts += [to_yaml(its, pool.manifest_notes) for pool in advice.pools if (its := _manifests(pool))]
    return parts


def _rows(pool: PoolAdvice) -> list[tuple[object, ...]]:
    shared = (pool.warm.warm_gpus, shown_duration(pool.warm.keep_alive_seconds), _limit(pool.gpu_limit))
    return [
        (pool.pool, one.name, _length(one), _minutes(one.current_minutes), *shared) for one in pool.slice_plan.classes
    ]


def _length(one: SliceClass) -> str:
    return "not sliced" if one.minutes is None else _minutes(one.minutes)


def _minutes(minutes: float | None) -> str:
    return "-" if minutes is None else shown_duration(minutes * SECONDS_PER_MINUTE)


def _limit(gpus: int | None) -> object:
    return "none" if gpus is None else gpus


def _about(pool: PoolAdvice) -> list[str]:
    """The pool's changes, each with its reasons, then every reason that no change has told already."""
    lines = [f"\n{pool.pool}:"]
    told: list[str] = []
    for change in pool.changes:
        lines.append(_changed(change))
        lines += _bullets(_new(change.reasons, told), indent="    ")
    classes = pool.slice_plan.classes
    named = [f"{one.name}: {why}" if len(classes) > 1 else why for one in classes for why in one.reasons]
    lines += _bullets(_new((*named, *pool.reasons), told), indent="  ")
    if pool.sharing_factor > 1:
        lines.append(f"  - each GPU is shared by up to {pool.sharing_factor} jobs")
    return lines


def _changed(change: Change) -> str:
    verdict = "" if change.allowed else " (refused by a guard)"
    before = "unset" if change.old is None else change.old
    after = "unset" if change.new is None else change.new
    return f"  change {change.object} {change.field}: {before} -> {after}{verdict}"


def _new(reasons: Iterable[str], told: list[str]) -> list[str]:
    """Those of ``reasons`` that ``told`` does not hold, with or without a heading before them; they are added."""
    found = []
    for reason in reasons:
        if not any(reason == known or reason.endswith(f": {known}") for known in told):
            told.append(reason)
            found.append(reason)
    return found


def _bullets(reasons: Iterable[str], indent: str = "") -> list[str]:
    return [f"{indent}- {reason}" for reason in reasons]


def _manifests(pool: PoolAdvice) -> list[dict[str, object]]:
    return [*([] if pool.patch is None else [pool.patch]), *pool.manifests]
