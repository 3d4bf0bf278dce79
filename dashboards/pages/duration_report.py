"""The report on durations as a page: what was measured, beside what would have been without the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from advisor.domain.reports import DurationReport, DurationScores, RunProtocol
from advisor.domain.units import SECONDS_PER_HOUR, shown_duration
from dashboards.charts.figure import Chart
from dashboards.charts.quality import (
    calibration_curve,
    coverage_by_week,
    error_by_duration,
    factor_off,
    predictor_name,
)
from dashboards.formats import percent, signed
from dashboards.pages.duration_measures import ERROR, MEASURES, PROMISED, WITHIN_2X, Measure, coverage, pinball

__all__ = ["DurationReportPage", "ProtocolView", "duration_report_page", "protocol_view"]

_FLOOR, _MODEL = "median_of_5", "model"
_SECONDS_READ_WELL = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """One figure of who is served, beside that of the baseline."""

    label: Annotated[str, "What was measured."]
    meaning: Annotated[str, "How it was measured."]
    value: Annotated[str, "The figure of the predictor that is served, or of the model where the baseline is."]
    note: Annotated[str, "What to hold it against."]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureRow:
    """One measure of every predictor on the same jobs."""

    label: Annotated[str, "What was measured."]
    meaning: Annotated[str, "How it was measured, and which way is better."]
    values: Annotated[tuple[str, ...], "The figures, one a predictor."]
    best: Annotated[int | None, "Which predictor did best; none where they are level or none is better."]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureTable:
    """Measures that answer one question."""

    title: Annotated[str, "What the measures answer together."]
    rows: Annotated[tuple[MeasureRow, ...], "The measures."]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCell:
    """One predictor on one group of jobs."""

    error: Annotated[str, "By what factor the median was off, on average of the logarithms."]
    covered: Annotated[str, "Share of jobs that ended by their P90; promised are 90 %."]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """One group of jobs."""

    name: Annotated[str, "The group."]
    jobs: Annotated[int, "Jobs scored in the group; few jobs make a rough figure."]
    cells: Annotated[tuple[GroupCell, ...], "The figures, one cell a predictor."]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """The jobs told apart by one property."""

    id: Annotated[str, "Name of the table on the page."]
    title: Annotated[str, "What tells the jobs apart."]
    note: Annotated[str, "What the groups are."]
    rows: Annotated[tuple[GroupRow, ...], "The groups."]


@dataclass(frozen=True, slots=True, kw_only=True)
class RestRow:
    """What one predictor said of the rest of running jobs."""

    predictor: Annotated[str, "Whose answer at submission was conditioned on the age."]
    covered: Annotated[tuple[str, ...], "Share whose rest came within P50, P80, P90 and P95 of the rest."]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningAge:
    """Jobs that ran longer than an age."""

    age: Annotated[str, "How long the jobs had run when they were asked about again."]
    jobs: Annotated[int, "Jobs that ran longer than that."]
    rows: Annotated[tuple[RestRow, ...], "What was said of their rest, one row a predictor."]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolView:
    """How the figures were measured, so that they can be measured again."""

    digest: Annotated[str, "Digest of the jobs: another history has another."]
    jobs: Annotated[int, "Jobs or samples in the history, those before the split included."]
    split: Annotated[datetime | None, "From here on jobs were scored; what was known before it was learnt from."]
    refits: Annotated[int, "How often the model was fitted on the way; the other predictors stayed as they were."]
    seed: Annotated[int, "Seed of every random choice."]
    versions: Annotated[tuple[str, ...], "What it ran on."]
    assumed: Annotated[tuple[str, ...], "What had to be assumed, and what could not be scored."]


@dataclass(frozen=True, slots=True, kw_only=True)
class DurationReportPage:
    """How well durations are predicted on one history."""

    synthetic: Annotated[bool, "Whether the history is a generated workload, which says nothing about a real cluster."]
    served: Annotated[str, "Who would answer: the model only where it beats the baseline."]
    scored: Annotated[int, "Jobs scored: submitted from the split on, and ended within the history."]
    headlines: Annotated[tuple[Headline, ...], "The figures to know first."]
    predictors: Annotated[tuple[str, ...], "Who answered the same questions."]
    measures: Annotated[tuple[MeasureTable, ...], "Every measure of every predictor."]
    charts: Annotated[tuple[Chart, ...], "Whether promises were kept: over all levels, and from week to week."]
    decades: Annotated[Chart | None, "How far off the medians were, by the duration that came."]
    groupings: Annotated[tuple[Grouping, ...], "The same jobs by what was known of them, and by what they were."]
    running: Annotated[tuple[RunningAge, ...], "Whether the rest of a running job came within what was promised."]
    protocol: Annotated[ProtocolView, "How all of this was measured."]


def duration_report_page(report: DurationReport) -> DurationReportPage:
    """The page of ``report``."""
    names = tuple(report.scores)
    return DurationReportPage(
        synthetic=report.protocol.synthetic,
        served=predictor_name(report.served),
        scored=report.scores[report.served].n,
        headlines=_headlines(report),
        predictors=tuple(predictor_name(name) for name in names),
        measures=tuple(
            MeasureTable(
                title=title, rows=tuple(_measure_row(measure, list(report.scores.values())) for measure in them)
            )
            for title, them in MEASURES.items()
        ),
        charts=tuple(chart for chart in (calibration_curve(report), coverage_by_week(report)) if chart is not None),
        decades=error_by_duration(report),
        groupings=_groupings(report, names),
        running=_running(report),
        protocol=protocol_view(report.protocol),
    )


def _measure_row(measure: Measure, scores: list[DurationScores]) -> MeasureRow:
    found = [measure.of(one) for one in scores]
    values = tuple(measure.show(value) for value in found)
    return MeasureRow(label=measure.label, meaning=measure.meaning, values=values, best=_best(measure, found, values))


def _best(measure: Measure, found: list[float | None], shown: tuple[str, ...]) -> int | None:
    """Which is best; None where another one reads the same."""
    known = {place: value for place, value in enumerate(found) if value is not None}
    if len(known) < 2:
        return None
    first = min(known, key=lambda place: measure.badness(known[place]))
    return None if any(shown[place] == shown[first] for place in known if place != first) else first


def _headlines(report: DurationReport) -> tuple[Headline, ...]:
    ours, floor = report.scores[report.served], report.scores.get(_FLOOR)
    rival_name, rival = (_MODEL, report.scores.get(_MODEL)) if report.served == _FLOOR else (_FLOOR, floor)
    beside = predictor_name(rival_name).lower()
    made = [
        Headline(
            label=measure.label,
            meaning=measure.meaning,
            value=measure.show(measure.of(ours)),
            note="" if rival is None else f"{beside} {measure.show(measure.of(rival))}",
        )
        for measure in (ERROR, WITHIN_2X)
    ]
    loss = pinball("0.9")
    change = _change(loss.of(ours), None if rival is None else loss.of(rival))
    covered = coverage("0.9")
    return (
        *made,
        Headline(label=loss.label, meaning=loss.meaning, value=loss.show(loss.of(ours)), note=f"{change} vs {beside}"),
        Headline(
            label=covered.label, meaning=covered.meaning, value=covered.show(covered.of(ours)), note="promised 90 %"
        ),
    )


def _change(ours: float | None, theirs: float | None) -> str:
    return signed(None if ours is None or not theirs else ours / theirs - 1.0)


def _groupings(report: DurationReport, names: tuple[str, ...]) -> tuple[Grouping, ...]:
    made = (
        Grouping(
            id="history",
            title="By what was known",
            note="Warm: jobs of the same owner and GPU count had ended before. Cold: none had.",
            rows=_rows(report.by_history, names, str.capitalize),
        ),
        Grouping(
            id="key",
            title="By the history that carried the baseline",
            note="The most specific group of which any job had ended when the question was asked.",
            rows=_rows(report.by_key, names, _key_name),
        ),
        Grouping(
            id="gpus",
            title="By GPUs asked for",
            note="All GPUs of the job.",
            rows=_rows(report.by_gpus, names, lambda gpus: f"{gpus} GPU" if float(gpus) <= 1 else f"{gpus} GPUs"),
        ),
        Grouping(
            id="decade",
            title="By actual duration",
            note="Sorted by what came, as in the chart: coverage cannot be 90 % in every row, nor should it.",
            rows=_rows(report.by_decade, names, _decade_name),
        ),
    )
    return tuple(grouping for grouping in made if grouping.rows)


def _rows(
    table: Mapping[str, Mapping[str, DurationScores]], names: tuple[str, ...], shown: Callable[[str], str]
) -> tuple[GroupRow, ...]:
    groups = {group: scores.n for name in names for group, scores in table.get(name, {}).items() if scores.n}
    return tuple(
        GroupRow(name=shown(group), jobs=jobs, cells=tuple(_cell(table[name][group]) for name in names))
        for group, jobs in groups.items()
    )


def _cell(scores: DurationScores) -> GroupCell:
    return GroupCell(error=factor_off(scores.log_mae), covered=percent(scores.coverage.get("0.9")))


def _key_name(key: str) -> str:
    """``user+gpus`` as people say it."""
    owner, plus, _ = key.partition("+")
    if plus:
        return f"Same {owner} and GPU count" if owner != "anyone" else "Same GPU count, no owner named"
    return {"gpus": "Same GPU count", "all": "Any job at all", "anyone": "No owner named"}.get(key, f"Same {key}")


def _decade_name(decade: str) -> str:
    low, high = float(decade), 10 * float(decade)
    return f"{low:,g} to {high:,g} s" if high <= _SECONDS_READ_WELL else f"{_roughly(low)} to {_roughly(high)}"


def _roughly(seconds: float) -> str:
    """To two digits: a bound of a decade is round in seconds only."""
    number, unit = shown_duration(seconds).split()
    return f"{float(f'{float(number):.2g}'):g}\u00a0{unit}"


def _running(report: DurationReport) -> tuple[RunningAge, ...]:
    ages = {age: scores.n for table in report.running.values() for age, scores in table.items() if scores.n}
    return tuple(
        RunningAge(
            age=_age(float(age)),
            jobs=jobs,
            rows=tuple(
                RestRow(
                    predictor=predictor_name(name),
                    covered=tuple(percent(table[age].coverage.get(level)) for level in PROMISED),
                )
                for name, table in report.running.items()
            ),
        )
        for age, jobs in ages.items()
    )


def _age(seconds: float) -> str:
    return shown_duration(seconds) if seconds < SECONDS_PER_HOUR else f"{seconds / SECONDS_PER_HOUR:g} h"


def protocol_view(protocol: RunProtocol) -> ProtocolView:
    """How a report's figures were measured."""
    return ProtocolView(
        digest=protocol.data_digest,
        jobs=protocol.rows,
        split=protocol.split_time,
        refits=protocol.refits,
        seed=protocol.seed,
        versions=tuple(f"{name} {version}" for name, version in protocol.versions.items()),
        assumed=protocol.assumed,
    )
