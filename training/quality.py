"""The gate: may a fitted model be served? Only if it beats the baseline and is no worse than the champion."""

from __future__ import annotations

from advisor.domain.reports import DurationReport, DurationScores, PromotionDecision
from advisor.domain.units import counted
from advisor.forecast.baselines import MEDIAN_OF_5
from advisor.forecast.duration import MODEL

__all__ = ["may_be_served"]

_LEAST_SCORED = 50

_NO_WORSE = 1.02
"""A fresh fit knows newer work: it takes the champion's place unless it is worse by more than this factor."""


def may_be_served(report: DurationReport, version: str | None, champion: str | None = None) -> PromotionDecision:
    """Whether the model is better than the baseline and no worse than ``champion``, if the report knows one.

    Both in the mean log error and in the q90 pinball loss. A champion that was fitted on part of the scored
    jobs is met on those it has not seen; where these are too few to tell, it stays. ``measures`` hold both
    figures of everybody compared, named ``<predictor>.log_mae`` and ``<predictor>.pinball_90``; the model's on
    the jobs of such a meeting are named ``model_since_<champion>``, since they compare with no others.
    """
    ours, floor = report.scores[MODEL], report.scores[MEDIAN_OF_5]
    measures = {**_measures(MODEL, ours), **_measures(MEDIAN_OF_5, floor)}
    if ours.n < _LEAST_SCORED:
        reason = f"only {counted(ours.n, 'job')} could be scored, and {_LEAST_SCORED} are needed to tell"
        return PromotionDecision(promoted=False, version=version, reasons=(reason,), measures=measures)
    verdicts = _verdicts(ours, floor, MEDIAN_OF_5, 1.0)
    met = None if champion is None else _met(report, champion)
    kept = False
    if champion is not None and met is not None:
        ours, theirs = met
        kept = ours.n < _LEAST_SCORED
        if not kept:
            measures |= _measures(champion, theirs)
            if champion not in report.scores:
                measures |= _measures(f"{MODEL}_since_{champion}", ours)
            verdicts += _verdicts(ours, theirs, champion, _NO_WORSE)
    beaten = all(better for better, _ in verdicts)
    reasons = [reason for _, reason in verdicts]
    if kept:
        reasons.append(
            f"the {champion} stays: {counted(ours.n, 'job')} came since it was fitted, and {_LEAST_SCORED} are needed"
            " to tell which is better"
        )
    return PromotionDecision(
        promoted=beaten and not kept, version=version, reasons=tuple(reasons), measures=measures, kept=beaten and kept
    )


def _met(report: DurationReport, champion: str) -> tuple[DurationScores, DurationScores] | None:
    """The model's scores and the champion's on jobs that neither has been fitted on."""
    if champion in report.scores:
        return report.scores[MODEL], report.scores[champion]
    if champion in report.versus:
        return report.versus[champion].model, report.versus[champion].rival
    return None


def _measures(name: str, scores: DurationScores) -> dict[str, float]:
    if scores.log_mae is None:
        return {}
    return {f"{name}.log_mae": scores.log_mae, f"{name}.pinball_90": scores.pinball_log["0.9"]}


def _verdicts(ours: DurationScores, theirs: DurationScores, rival: str, factor: float) -> list[tuple[bool, str]]:
    """Of each measure whether it is below the rival's times ``factor``, and the sentence that says so."""
    mine, other = _measures(rival, ours), _measures(rival, theirs)
    found = []
    for measure, value in mine.items():
        better = value < other[measure] * factor
        if factor == 1.0:
            said = "below" if better else "not below"
        else:
            said = f"{'not ' if better else ''}more than {100 * (factor - 1):.0f} % above"
        named = measure.removeprefix(f"{rival}.")
        found.append((better, f"{named}: {value:.4f} is {said} the {other[measure]:.4f} of {rival}"))
    return found
