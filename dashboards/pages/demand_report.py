"""The report on demand as a page: fans beside what came, skill by horizon, coverage, and what releases are worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from advisor.domain.reports import DemandReport, HorizonScores, ReleaseScores
from dashboards.charts.demand_quality import (
    best_baseline_loss,
    capacity_loss,
    coverage_by_level,
    fan_beside_truth,
    skill_by_horizon,
)
from dashboards.charts.figure import Chart
from dashboards.formats import UNKNOWN, percent, signed
from dashboards.pages.duration_report import ProtocolView, protocol_view

__all__ = ["DemandReportPage", "demand_report_page"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandRow:
    """One pool at one horizon."""

    horizon: Annotated[str, "How far ahead."]
    scored: Annotated[int, "Moments forecast from, whose outcome was seen."]
    served: Annotated[str, "Who would have answered most often: the model only where it has skill."]
    skill: Annotated[str, "Share of the best baseline's loss at P80 to P99 that the model saved; none below zero."]
    loss: Annotated[str, "The model's mean loss at P80 to P99, and who came next, against the constant baseline."]
    served_loss: Annotated[str, "The same of what the gate would have served."]
    error: Annotated[str, "Mean error of the model's median against that of persistence: demand as now."]
    covered: Annotated[str, "Shares of outcomes below P95 and up to it: honest where 95 % lies between."]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRow:
    """What the ends of running jobs are worth to the lower quantiles at one horizon."""

    horizon: Annotated[str, "How far ahead."]
    predicted: Annotated[str, "Change of the loss at P10 by the releases that predicted durations foresee."]
    true: Annotated[str, "Change of the loss at P10 by the true releases, which nobody can know."]
    share: Annotated[str, "What predictions give of that which the truth would give."]
    median_predicted: Annotated[str, "Change of the loss at P50 by predicted releases."]
    median_true: Annotated[str, "Change of the loss at P50 by true releases."]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandPoolView:
    """One pool."""

    name: Annotated[str, "The pool."]
    rows: Annotated[tuple[DemandRow, ...], "Its horizons."]
    releases: Annotated[tuple[ReleaseRow, ...], "What releases are worth; none where no jobs were given."]
    charts: Annotated[tuple[Chart, ...], "Skill, coverage, and the last days forecast beside what came."]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandReportPage:
    """How well demand is forecast on one history."""

    synthetic: Annotated[bool, "Whether the history is a generated workload, which says nothing about a real cluster."]
    pools: Annotated[tuple[DemandPoolView, ...], "Every pool that could be scored."]
    protocol: Annotated[ProtocolView, "How all of this was measured."]


def demand_report_page(report: DemandReport) -> DemandReportPage:
    """The page of ``report``."""
    return DemandReportPage(
        synthetic=report.protocol.synthetic,
        pools=tuple(_pool(report, pool, scores) for pool, scores in report.pools.items() if scores),
        protocol=protocol_view(report.protocol),
    )


def _pool(report: DemandReport, pool: str, scores: dict[int, HorizonScores]) -> DemandPoolView:
    fans = [fan_beside_truth(fan) for fan in report.fans if fan.pool == pool]
    charts = (skill_by_horizon(pool, scores), coverage_by_level(pool, scores), *fans)
    return DemandPoolView(
        name=pool,
        rows=tuple(_row(horizon, one) for horizon, one in sorted(scores.items())),
        releases=tuple(_release(horizon, one) for horizon, one in sorted(report.releases.get(pool, {}).items())),
        charts=tuple(chart for chart in charts if chart is not None),
    )


def _row(horizon: int, scores: HorizonScores) -> DemandRow:
    constant = capacity_loss(scores.pinball["constant"])
    below, upto = scores.coverage["0.95"]
    best = best_baseline_loss(scores)
    return DemandRow(
        horizon=f"{horizon} min",
        scored=scores.n,
        served=scores.served.replace("_", " "),
        skill=UNKNOWN if scores.skill is None else percent(scores.skill),
        loss=f"{_against(capacity_loss(scores.pinball['model']), constant)}, best baseline {_against(best, constant)}",
        served_loss=_against(capacity_loss(scores.pinball["served"]), constant),
        error=_against(scores.mae["model"], scores.mae["persistence"]),
        covered=f"{percent(below)} to {percent(upto)}",
    )


def _release(horizon: int, scores: ReleaseScores) -> ReleaseRow:
    low, half = ({name: loss[level] for name, loss in scores.pinball.items()} for level in ("0.1", "0.5"))
    return ReleaseRow(
        horizon=f"{horizon} min",
        predicted=_against(low["predicted"], low["without"]),
        true=_against(low["true"], low["without"]),
        share=percent(scores.share_of_gain("0.1")),
        median_predicted=_against(half["predicted"], half["without"]),
        median_true=_against(half["true"], half["without"]),
    )


def _against(ours: float, theirs: float) -> str:
    return signed(ours / theirs - 1.0 if theirs > 0 else None)
