"""The gate: may a fitted model be served? Only if it beats the median of the last five, and any incumbent."""

from __future__ import annotations

from advisor.domain.reports import DurationReport, DurationScores, PromotionDecision

__all__ = ["beats_baseline"]

_LEAST_SCORED = 50


def beats_baseline(
    report: DurationReport, version: str | None, *, model: str = "model", rivals: tuple[str, ...] = ("median_of_5",)
) -> PromotionDecision:
    """Whether ``model`` is better than every one of ``rivals`` in the mean log error and in the q90 pinball loss.

    Decided on at least 50 scored jobs. A rival missing from the report is passed over. ``measures`` hold
    both figures of everybody compared, named ``<predictor>.log_mae`` and ``<predictor>.pinball_90``.
    """
    scores = report.scores[model]
    compared = [name for name in rivals if name in report.scores]
    measures: dict[str, float] = {}
    for name in (model, *compared):
        measures.update(_measures(name, report.scores[name]))
    if scores.n < _LEAST_SCORED:
        reason = f"only {scores.n} jobs could be scored, and {_LEAST_SCORED} are needed to tell"
        return PromotionDecision(promoted=False, version=version, reasons=(reason,), measures=measures)
    verdicts = [_verdict(measure, model, name, measures) for name in compared for measure in ("log_mae", "pinball_90")]
    return PromotionDecision(
        promoted=all(better for better, _ in verdicts),
        version=version,
        reasons=tuple(reason for _, reason in verdicts),
        measures=measures,
    )


def _measures(name: str, scores: DurationScores) -> dict[str, float]:
    if scores.log_mae is None:
        return {}
    return {f"{name}.log_mae": scores.log_mae, f"{name}.pinball_90": scores.pinball_log["0.9"]}


def _verdict(measure: str, model: str, rival: str, measures: dict[str, float]) -> tuple[bool, str]:
    ours, theirs = measures[f"{model}.{measure}"], measures[f"{rival}.{measure}"]
    better = ours < theirs
    return better, f"{measure}: {ours:.4f} is {'' if better else 'not '}below the {theirs:.4f} of {rival}"
