"""Devices and jobs worked out sample by sample, in dictionaries of dictionaries: slow, and plain to see."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import pairwise

STEP = 60.0
EXPORTER = "nvidia-dcgm-exporter-x"
KINDS = {
    "DCGM_FI_DEV_GPU_UTIL": "utilisation",
    "DCGM_FI_DEV_GPU_UTIL_RATIO": "utilisation",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": "engine_active",
    "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO": "engine_active",
    "DCGM_FI_DEV_FB_USED": "used",
    "DCGM_FI_DEV_FB_USED_BYTES": "used",
    "DCGM_FI_DEV_POWER_USAGE": "power",
    "DCGM_FI_DEV_BOARD_POWER_WATTS": "power",
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": "energy",
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION_JOULES_TOTAL": "energy",
}
OLD_FACTORS = {"utilisation": 0.01, "engine_active": 1.0, "used": 2.0**20, "power": 1.0, "energy": 0.001}
MOST = {"utilisation": 1.01, "engine_active": 1.01, "used": 2.0**42, "power": 5000.0, "energy": math.inf}
APART = {"utilisation": 0.005, "used": 2.0**19}
AT_WORK = {"utilisation": 0.05, "used": 2.0**30}


def device_values(series):
    """By device and kind, the value at each time."""
    seen = defaultdict(lambda: defaultdict(list))
    for one in series:
        kind, device, pod = _said(one)
        for time, value in zip(one.times.tolist(), one.values.tolist(), strict=True):
            clean = _clean(one, kind, value)
            if clean is not None:
                seen[device, kind][time].append((pod, clean))
    found = defaultdict(dict)
    for place, by_time in seen.items():
        for time, rows in by_time.items():
            plain = [value for pod, value in rows if pod is None]
            found[place][time] = max(plain or [value for _, value in rows])
    return found


def _said(one):
    labels = one.labels
    pod = labels.get("exported_pod") or labels.get("pod")
    return KINDS[labels["__name__"]], labels["UUID"], None if pod == EXPORTER else pod


def _clean(one, kind, value):
    blank = value >= 9.2e18 or 140737488355328 <= value <= 140737488355331
    if kind != "energy":
        blank = blank or 2147483632 <= value <= 2147483635
    if math.isnan(value) or math.isinf(value) or blank or value < 0:
        return None
    value = value * (OLD_FACTORS[kind] if "DCGM_FI_DRIVER_VERSION" in one.labels else 1.0)
    if value > MOST[kind]:
        return None
    return min(value, 1.0) if kind in {"utilisation", "engine_active"} else value


def own_values(series, devices):
    """By device, kind and pod, the values at the times at which they are really the pod's."""
    lines = defaultdict(lambda: defaultdict(dict))
    plain = defaultdict(set)
    for one in series:
        kind, device, pod = _said(one)
        for time, value in zip(one.times.tolist(), one.values.tolist(), strict=True):
            clean = _clean(one, kind, value)
            if kind not in APART or clean is None:
                continue
            if pod is None:
                plain[device, kind].add(time)
            else:
                row = lines[device, kind][time]
                row[pod] = max(row.get(pod, 0.0), clean)
    found = defaultdict(dict)
    for (device, kind), by_time in lines.items():
        believed = False
        for time in sorted(by_time):
            row, whole, apart = by_time[time], devices[device, kind][time], APART[kind]
            most, least = max(row.values()), min(row.values())
            together = time in plain[device, kind] and abs(sum(row.values()) - whole) <= 0.05 * whole + apart
            if len(row) > 1 and (most - least > apart or (most > apart and together)):
                believed = True
            copies = len(row) > 1 and most - least <= apart and abs(most - whole) <= apart and most > apart
            unseen = most == 0 and whole > AT_WORK[kind]
            if believed and not copies and not unseen:
                for pod, value in row.items():
                    found[device, kind, pod][time] = value
    return found


class Looks:
    """Who was shown on one device, look by look."""

    def __init__(self, shown, runs):
        """``shown`` are pods by time; ``runs`` are (job, start, end) by pod."""
        self.shown = shown
        self.runs = runs
        self.hidden = set()
        before = None
        for time in sorted(shown):
            owners = {owner for owner, _ in self._held(time)}
            if not owners:
                continue
            alone = next(iter(owners)) if len(owners) == 1 else None
            if alone and before and alone != before and self._runs_still(before, time):
                self.hidden |= {alone, before}
            before = alone

    def _run(self, pod, time):
        """The owner of a pod at a time, and when its run ends; nothing where a known pod does not run."""
        if pod not in self.runs:
            return ("pod", pod), math.inf
        job, start, end = self.runs[pod]
        return (("job", job), end) if start <= time < end else None

    def _held(self, time):
        return {held for pod in self.shown.get(time, ()) if (held := self._run(pod, time))}

    def _earlier(self, time):
        return [past for past in sorted(self.shown) if past <= time]

    def _runs_still(self, owner, time):
        ends = [end for past in self._earlier(time) for who, end in self._held(past) if who == owner]
        return owner[0] == "job" and any(time < end for end in ends)

    def had_by(self, job, time):
        """Whether the job had the device."""
        return any(
            who == ("job", job) and time < end and time - past <= 2 * STEP
            for past in self._earlier(time)
            for who, end in self._held(past)
        )

    def sharers(self, time):
        """How many had it."""
        owners = set()
        for past in self._earlier(time):
            for who, end in self._held(past):
                if (who[0] == "job" and time < end) or past == time:
                    owners.add(who)
        return len(owners)


def usages(series, jobs):
    """By job: by source, kind and device the values of every moment, and whether each is an estimate."""
    devices = device_values(series)
    own = own_values(series, devices)
    runs = {span.name: (job.job, span.start, span.end or math.inf) for job in jobs for span in job.pods}
    found = {job.job: defaultdict(lambda: defaultdict(list)) for job in jobs}
    hidden = {job.job: set() for job in jobs}
    for device in {device for device, _ in devices}:
        shown = defaultdict(set)
        for one in series:
            _, which, pod = _said(one)
            if which == device and pod is not None:
                for time in one.times.tolist():
                    shown[time].add(pod)
        looks = Looks(shown, runs)
        for job in jobs:
            if ("job", job.job) in looks.hidden:
                hidden[job.job].add(device)
            for kind in ("utilisation", "engine_active", "used", "power", "energy"):
                for time, value in _amounts(kind, devices[device, kind]):
                    if looks.had_by(job.job, time):
                        pods = [span.name for span in job.pods if span.start <= time < (span.end or math.inf)]
                        mine = [own[device, kind, pod][time] for pod in pods if time in own[device, kind, pod]]
                        part, guess = _part(value, looks.sharers(time), mine)
                        most = 1.0 if kind == "utilisation" else math.inf
                        found[job.job][kind][device].append((min(part, most), guess, bool(mine)))
    kept = {
        job: {kind: {on: _counting(each) for on, each in by.items()} for kind, by in of.items()}
        for job, of in found.items()
    }
    return kept, hidden


def _counting(values):
    """Own values alone where they are most of all; each with whether it is an estimate."""
    own = [(value, guess) for value, guess, mine in values if mine]
    return own if own and len(own) >= len(values) / 2 else [(value, guess) for value, guess, _ in values]


def _amounts(kind, by_time):
    times = sorted(by_time)
    if kind == "energy":
        pairs = [(a, b) for a, b in pairwise(times) if b - a <= 3 * STEP]
        return [(b, by_time[b] - by_time[a]) for a, b in pairs]
    return [(time, by_time[time] * (STEP if kind == "power" else 1.0)) for time in times]


def _part(value, sharers, mine):
    return (sum(mine), False) if mine else (value / sharers, sharers > 1)
