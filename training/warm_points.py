"""What came of a policy's settings as points of its curve."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from advisor.domain.warm_reports import WarmPoint
from training.warm_replay import WarmRun
from training.warm_schedule import WarmSchedule

__all__ = ["points"]

_P95 = 0.95


def points(schedules: Sequence[WarmSchedule], runs: Sequence[WarmRun]) -> tuple[WarmPoint, ...]:
    """One point a setting; ``runs`` are those of every pool that is summed up, setting by setting."""
    wanted = sum(run.wanted for run in runs)
    demanded = sum(run.demanded for run in runs)
    risen = sum(run.risen for run in runs)
    made = []
    for place, schedule in enumerate(schedules):
        paid = sum(float(run.paid[place]) for run in runs)
        boots = sum(float(run.boots[place]) for run in runs)
        unmet = sum(float(run.unmet_minutes[place]) for run in runs)
        used = sum(float(run.used[place]) for run in runs)
        owned = sum(float(run.owned[place]) for run in runs)
        waits = np.concatenate([run.waits[place] for run in runs])
        made.append(
            WarmPoint(
                setting=schedule.setting,
                cost=_over(paid, wanted),
                mean_wait_minutes=_over(unmet, demanded),
                p95_wait_minutes=float(np.quantile(waits, _P95, method="inverted_cdf")) if waits.size else 0.0,
                node_starts=sum(int(run.starts[place]) for run in runs),
                utilisation=_over(used, owned),
                wait_per_new_gpu_minutes=_over(unmet, risen),
                boot_share=_over(boots, wanted),
            )
        )
    return tuple(made)


def _over(top: float, bottom: float) -> float:
    """0 where nothing was ever wanted."""
    return top / bottom if bottom > 0 else 0.0
