"""``python -m benchmarks.ablation_durations``: what each idea of the duration model gives.

On the first 70 % in time of ``GSA_BENCH_TRACE`` (with ``GSA_BENCH_FORMAT``), split again at 70 %: what is chosen
by this table has not seen the last 30 %. Without a trace, on a labelled synthetic workload.
"""

from __future__ import annotations

from dataclasses import replace

from advisor.domain.reports import DurationScores
from advisor.forecast.blend import BlendSettings
from advisor.forecast.calibration import CalibrationSettings
from benchmarks.histories import base_history
from training.backtest import BacktestSettings, evaluate_durations
from training.forests import DurationSettings
from training.hazards import HazardSettings

BASE = DurationSettings()
REFIT_DAYS = 14.0
NOTHING_BENT = CalibrationSettings(bound=0.0)


def _fixed(*weights: float) -> BlendSettings:
    """Weights of forest, hazard and baseline that no experience moves."""
    return BlendSettings(prior=weights, prior_unseen=weights, prior_questions=1e12)


VARIANTS = {
    "as it is": BASE,
    "forest alone": replace(BASE, blend=_fixed(1.0, 0.0, 0.0), calibration=NOTHING_BENT),
    "hazard alone": replace(BASE, blend=_fixed(0.0, 1.0, 0.0), calibration=NOTHING_BENT),
    "forest and hazard, half and half": replace(BASE, blend=_fixed(0.5, 0.5, 0.0), calibration=NOTHING_BENT),
    "all three by rolling score, nothing bent": replace(BASE, calibration=NOTHING_BENT),
    "every deviation bent, chance or not": replace(BASE, calibration=CalibrationSettings(doubt=0.0)),
    "weights of the latest 1,500, no prior": replace(
        BASE, blend=BlendSettings(prior_questions=1.0, own_questions=50.0), calibration=CalibrationSettings(window=1500)
    ),
    "hazard in finer bins": replace(BASE, hazard=HazardSettings(quantiles=24, widest=1.7)),
    "trees forget in 3 days": replace(BASE, decay_days=3.0),
    "four times the trees": replace(BASE, trees=60),
}


def main() -> None:
    """Print one row for each variant."""
    named, history = base_history()
    history = history[: int(0.7 * len(history))]
    print(f"{named}: the first {len(history):,} jobs in time, split at 70 %")
    print(f"{'':<42}{'log MAE':>9}{'in 2x':>8}{'typical':>9}{'CRPS':>8}{'P90':>8}{'cov 90':>8}")
    for name, fit in VARIANTS.items():
        report = evaluate_durations(history, BacktestSettings(fit=fit, refit_days=REFIT_DAYS))
        if name == next(iter(VARIANTS)):
            _row("median of five", report.scores["median_of_5"])
        _row(name, report.scores["model"])


def _row(name: str, scores: DurationScores) -> None:
    document = scores.to_json()
    figures = (document["log_mae"], document["within_2x"], document["typical_within_2x"], document["crps_log"])
    shown = "".join(f"{value:>{width}.3f}" for value, width in zip(figures, (9, 8, 9, 8), strict=True))
    print(f"{name:<42}{shown}{document['pinball_log']['0.9']:>8.3f}{document['coverage']['0.9']:>8.3f}", flush=True)


if __name__ == "__main__":
    main()
