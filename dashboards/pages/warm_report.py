"""The report on warm capacity as a page: the trade between cost and waiting, policy beside policy."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from advisor.domain.reports import RunProtocol
from advisor.domain.warm_reports import WarmAtCost, WarmComparison, WarmPoint, WarmReport
from dashboards.charts.figure import Chart
from dashboards.charts.frontier import policy_name, setting_in_words, wait_cost_frontier
from dashboards.formats import signed

__all__ = ["WarmReportPage", "warm_report_page"]

_NOTHING = "\u2013"
_ADVISOR = "advisor"


@dataclass(frozen=True, slots=True, kw_only=True)
class EqualCostCell:
    """One policy at one cost."""

    wait: Annotated[str, "Unmet GPU-minutes per GPU-minute demanded, in seconds; a dash where no setting costs that."]
    change: Annotated[str, "The wait against that of keep-alive alone at the same cost."]
    starts: Annotated[str, "Nodes started, between those of the neighbouring settings."]


@dataclass(frozen=True, slots=True, kw_only=True)
class EqualCostRow:
    """One policy of a pool."""

    policy: Annotated[str, "What decides how many nodes are ready and how long an idle one stays."]
    cells: Annotated[tuple[EqualCostCell, ...], "The policy at each cost."]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingRow:
    """One setting of the advisor's rule."""

    setting: Annotated[str, "What the rule was set to."]
    cost: Annotated[str, "Node-minutes paid over wanted, boots included."]
    boots: Annotated[str, "The part of the cost that went into boots."]
    wait: Annotated[str, "Unmet GPU-minutes per GPU newly asked for."]
    p95: Annotated[str, "What 95 % of those GPUs waited at most."]
    starts: Annotated[int, "Nodes started."]
    used: Annotated[str, "GPU-minutes used over paid."]


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmPoolView:
    """One pool, or several as one."""

    name: Annotated[str, "The pool; shared is all of them on common nodes, apart all of them added up."]
    served: Annotated[str, "The rule that the time before the split spoke for."]
    reason: Annotated[str, "How it spoke."]
    chart: Annotated[Chart, "Cost and wait of every policy at every setting."]
    costs: Annotated[tuple[str, ...], "The costs at which policies are compared."]
    rows: Annotated[tuple[EqualCostRow, ...], "Every policy at those costs."]
    settings: Annotated[tuple[SettingRow, ...], "Every setting of the advisor, the cheapest first."]


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmProtocolView:
    """How the figures were measured, so that they can be measured again."""

    digest: Annotated[str, "Digest of the data: another history has another."]
    rows: Annotated[int, "Samples or jobs in the history, those before the split included."]
    split: Annotated[datetime | None, "From here on policies were scored; what was known before it was learnt from."]
    refits: Annotated[int, "How often the forecast was fitted on the way."]
    seed: Annotated[int, "Seed of every random choice."]
    versions: Annotated[tuple[str, ...], "What it ran on."]
    assumed: Annotated[tuple[str, ...], "What had to be assumed."]


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmReportPage:
    """What warm capacity would have been worth on one history."""

    synthetic: Annotated[bool, "Whether the history is a generated workload, which says nothing about a real cluster."]
    pools: Annotated[tuple[WarmPoolView, ...], "Every pool, and all of them as one where there are several."]
    protocol: Annotated[WarmProtocolView, "How all of this was measured."]


def warm_report_page(report: WarmReport) -> WarmReportPage:
    """The page of ``report``."""
    pools = dict(report.pools) | ({"apart": report.apart} if report.apart else {})
    return WarmReportPage(
        synthetic=report.protocol.synthetic,
        pools=tuple(_pool(name, number, one) for number, (name, one) in enumerate(pools.items(), start=1)),
        protocol=_protocol(report.protocol),
    )


def _pool(name: str, number: int, one: WarmComparison) -> WarmPoolView:
    return WarmPoolView(
        name=name,
        served=policy_name(one.served or _ADVISOR),
        reason=one.reason or "",
        chart=wait_cost_frontier(name, number, one),
        costs=tuple(one.at_equal_cost),
        rows=tuple(
            EqualCostRow(
                policy=policy_name(policy), cells=tuple(_cell(at[policy]) for at in one.at_equal_cost.values())
            )
            for policy in one.curves
        ),
        settings=tuple(_setting(point) for point in sorted(one.curves[_ADVISOR], key=lambda point: point.cost)),
    )


def _cell(at: WarmAtCost) -> EqualCostCell:
    return EqualCostCell(
        wait=_NOTHING if at.mean_wait_minutes is None else f"{60.0 * at.mean_wait_minutes:.3f} s",
        change=signed(at.relative_to_keep_alive),
        starts=_NOTHING if at.node_starts is None else f"{at.node_starts:,.0f}",
    )


def _setting(point: WarmPoint) -> SettingRow:
    return SettingRow(
        setting=setting_in_words(point),
        cost=f"{point.cost:.3f}",
        boots=f"{point.boot_share:.3f}",
        wait=f"{point.wait_per_new_gpu_minutes:.2f} min",
        p95=f"{point.p95_wait_minutes:.1f} min",
        starts=point.node_starts,
        used=f"{100.0 * point.utilisation:.1f} %",
    )


def _protocol(protocol: RunProtocol) -> WarmProtocolView:
    return WarmProtocolView(
        digest=protocol.data_digest,
        rows=protocol.rows,
        split=protocol.split_time,
        refits=protocol.refits,
        seed=protocol.seed,
        versions=tuple(f"{name} {version}" for name, version in protocol.versions.items()),
        assumed=protocol.assumed,
    )
