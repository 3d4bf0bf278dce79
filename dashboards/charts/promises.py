"""How promises were kept from day to day."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from advisor.domain.promises import KeptPromises
from dashboards.charts.figure import Chart, Key, axis, figure, line
from dashboards.formats import percent

__all__ = ["promises_kept"]

_P90 = Key("Ended within their P90", "@accent", "line")
_P50 = Key("Ended within their P50", "@second", "line")
_PROMISED = Key("As promised: 90 % and 50 %", "@muted", "dots")


_DAY_MS = 86_400_000
_LABELS = 6


def _every(days: Sequence[KeptPromises]) -> int:
    """How many days from one label to the next."""
    return -(-((days[-1].begin - days[0].begin).days + 1) // _LABELS)


def promises_kept(days: Sequence[KeptPromises]) -> Chart | None:
    """The share of each day's promises, all of one origin, that were kept; None where nothing is known of any."""
    known = [day for day in days if day.counted]
    if not known:
        return None
    middles = [_middle(day) for day in known]
    counts = [day.counted for day in known]
    ends = [known[0].begin.strftime("%Y-%m-%d"), (known[-1].begin + timedelta(days=1)).strftime("%Y-%m-%d")]
    data = [
        *(_level(ends, level) for level in (90, 50)),
        _share(middles, [day.p50_share for day in known], counts, _P50),
        _share(middles, [day.p90_share for day in known], counts, _P90),
    ]
    layout = {
        # A label stands for a day, so none lies within one.
        "xaxis": axis(
            "Submitted on, UTC", type="date", tickformat="%d %b\n%Y", tick0=middles[0], dtick=_every(known) * _DAY_MS
        ),
        "yaxis": axis("Ended within, % of jobs", range=[0, 102], dtick=10),
        "margin": {"l": 56, "r": 16, "t": 12, "b": 64},
    }
    whole = known[0]
    for day in known[1:]:
        whole = whole.joined(day)
    made = "afterwards" if whole.replayed else "at submission"
    return Chart(
        id="promises-replayed" if whole.replayed else "promises-live",
        title=f"Promises made {made}, kept by day of submission",
        summary=(
            f"Of {whole.counted:,} promises made {made}, {percent(whole.p90_share)} ended within their P90 "
            f"(promised: 90 %) and {percent(whole.p50_share)} within their P50 (promised: 50 %)."
        ),
        keys=(_P90, _P50, _PROMISED),
        figure=figure(data, layout, height=320),
    )


def _middle(day: KeptPromises) -> str:
    return (day.begin + timedelta(hours=12)).strftime("%Y-%m-%dT%H:%M:%S")


def _level(ends: list[str], level: int) -> dict[str, Any]:
    return line((ends, [level] * 2), "Promised", _PROMISED.colour, {"width": 1.5, "dash": "dot"}, hoverinfo="skip")


def _share(middles: list[str], shares: list[float | None], counts: list[int], key: Key) -> dict[str, Any]:
    return line(
        (middles, [None if share is None else 100 * share for share in shares]),
        key.label,
        key.colour,
        mode="lines+markers",
        marker={"size": 6, "color": key.colour},
        customdata=counts,
        hovertemplate=f"{key.label}: %{{y:.1f}} %, jobs: %{{customdata:,}}<extra></extra>",
    )
