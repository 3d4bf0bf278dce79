"""The report on demand as tables for people."""

from __future__ import annotations

from rich.table import Table

from advisor.domain.reports import DemandReport, HorizonScores, ReleaseScores
from advisor.domain.units import SECONDS_PER_MINUTE, counted, shown_duration
from serving.cli.output import minute, table

__all__ = ["demand_tables"]

_COLUMNS = ("pool, ahead", "served", "skill", "P90 loss", "MAE", "P90 coverage")
_WORDS = (
    "P90 loss: pinball loss of the 90 % quantile against that of constant (the present plus the changes this pool has "
    "always seen). MAE: error of the median against that of persistence (as now). skill: share of the loss saved "
    "against the best baseline. P90 coverage: share below and share up to the quantile, honest where 0.9 lies between."
)
_RELEASE_COLUMNS = ("pool, ahead", "P10 predicted", "P10 true", "share", "P50 predicted", "P50 true", "share")
_RELEASE_WORDS = (
    "Loss of the 10 % and 50 % quantile against the same model without releases: with those that predicted durations "
    "foresee, and with the true ones, which nobody can know. share: what predictions give of what the truth would; "
    "none where the truth gives less than 1 %."
)


def demand_tables(report: DemandReport) -> list[Table | str]:
    """Every pool at every horizon, the model beside the simplest baselines; then what releases are worth."""
    rows = [
        _row(f"{pool}, {shown_duration(minutes * SECONDS_PER_MINUTE)}", scores)
        for pool, horizons in report.pools.items()
        for minutes, scores in horizons.items()
    ]
    protocol = report.protocol
    origin = f"{counted(protocol.rows, 'sample')}, split at {minute(protocol.split_time)} UTC"
    return [
        table("demand: the model on the held-out part", _COLUMNS, rows),
        _WORDS,
        *_release_tables(report),
        f"{origin}, {counted(protocol.refits, 'fit')}. Every level and baseline: --output json",
        *(f"- assumed: {assumption}" for assumption in protocol.assumed),
    ]


def _row(name: str, scores: HorizonScores) -> tuple[object, ...]:
    model, constant = scores.pinball["model"], scores.pinball.get("constant", {})
    loss = _relative(model.get("0.9"), constant.get("0.9"))
    mae = _relative(scores.mae.get("model"), scores.mae.get("persistence"))
    bracket = scores.coverage.get("0.9")
    covered = None if bracket is None else f"{bracket[0]:.3f}-{bracket[1]:.3f}"
    return (name, scores.served, scores.skill, loss, mae, covered)


def _release_tables(report: DemandReport) -> list[Table | str]:
    rows = [
        (
            f"{pool}, {shown_duration(minutes * SECONDS_PER_MINUTE)}",
            *_release_cells(scores, "0.1"),
            *_release_cells(scores, "0.5"),
        )
        for pool, horizons in report.releases.items()
        for minutes, scores in horizons.items()
    ]
    return [table("what releases of running jobs are worth", _RELEASE_COLUMNS, rows), _RELEASE_WORDS] if rows else []


def _release_cells(scores: ReleaseScores, level: str) -> tuple[object, ...]:
    without = scores.pinball["without"][level]
    share = scores.share_of_gain(level)
    shown = None if share is None else f"{100 * share:.0f} %"
    return (*(_relative(scores.pinball[name][level], without) for name in ("predicted", "true")), shown)


def _relative(ours: float | None, theirs: float | None) -> str | None:
    return None if ours is None or not theirs else f"{100 * (ours / theirs - 1):+.1f} %"
