"""What is shown of a world: the shapes of real lines, and values that say what the world says."""

from __future__ import annotations

import io
import math
import re
from collections import defaultdict

import numpy as np
import pytest

from advisor.domain.jobs import Outcome
from advisor.telemetry.prometheus.samples import Series
from tests.telemetry_world.dialects import DIALECTS, Quantity
from tests.telemetry_world.exposition import DCGM_JOB, KSM_JOB, Telemetry, _at_steps
from tests.telemetry_world.observer import expected, kube_state_scrapes
from tests.telemetry_world.world import World, WorldSpec, a_world

SMALL = {"days": 2, "gpus": 6, "jobs": 60}
_WORLDS: dict[object, World] = {}


def small(name: str, **more) -> Telemetry:
    dialect = DIALECTS[name]
    if dialect.sharing not in _WORLDS:
        _WORLDS[dialect.sharing] = a_world(WorldSpec(sharing=dialect.sharing, **SMALL))
    return Telemetry(_WORLDS[dialect.sharing], dialect, **more)


@pytest.fixture(params=sorted(DIALECTS))
def shown(request) -> Telemetry:
    return small(request.param)


def text_of(telemetry: Telemetry, names: str = ".*") -> str:
    out = io.StringIO()
    telemetry.write_to(out, names)
    return out.getvalue()


_HOST = r"ip-10-0-\d+-\d+-[0-9a-f]{4}\.ec2\.internal"
_UUID = r"GPU-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_GPU = rf'gpu="\d",UUID="{_UUID}",pci_bus_id="00000000:[0-9A-F]{{2}}:00\.0",device="nvidia\d",modelName="[^"]+"'
_POD = r'container="main",namespace="[a-z-]+",pod="[a-z0-9-]+"'
_OWN = rf'job="{DCGM_JOB}",instance="{_HOST}:9400",'
_STAMP = r"\d{10}\.\d{3}"
_SHAPES = {
    "exporter-3.3-relabelled": (
        "DCGM_FI_DEV_GPU_UTIL",
        (
            rf'{_GPU},Hostname="{_HOST}",DCGM_FI_DRIVER_VERSION="535\.161\.08",exported_container="main",'
            rf'exported_namespace="[a-z-]+",exported_pod="[a-z0-9-]+",job="{DCGM_JOB}",instance="{_HOST}:9400",'
            rf'namespace="gpu-operator",pod="{DCGM_JOB}-[0-9a-f]{{5}}",container="exporter",service="{DCGM_JOB}"'
        ),
    ),
    "exporter-4.5-time-sliced": (
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
        rf'{_OWN}{_GPU},Hostname="{_HOST}",DCGM_FI_DRIVER_VERSION="550\.54\.15",{_POD},vgpu="[0-3]"',
    ),
    "exporter-4.8-per-process": (
        "DCGM_FI_DEV_FB_USED",
        (
            rf'{_OWN}{_GPU},Hostname="{_HOST}",DCGM_FI_DRIVER_VERSION="570\.86\.15",{_POD},'
            rf'pod_uid="[0-9a-f-]{{36}}",vgpu="[0-3]"'
        ),
    ),
    "exporter-4.9-renamed": (
        "DCGM_FI_DEV_GPU_UTIL_RATIO",
        rf'{_OWN}{_GPU},hostname="{_HOST}",DCGM_FI_SYSTEM_DRIVER_VERSION="580\.65\.06",{_POD}',
    ),
    "exporter-4.5-mig": (
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
        (
            rf'{_OWN}{_GPU},GPU_I_PROFILE="[123]g\.\d+gb",GPU_I_ID="\d+",'
            rf'Hostname="{_HOST}",DCGM_FI_DRIVER_VERSION="550\.54\.15",{_POD}'
        ),
    ),
    "hami": ("DCGM_FI_DEV_GPU_UTIL", rf'{_OWN}{_GPU},Hostname="{_HOST}",DCGM_FI_DRIVER_VERSION="550\.54\.15"'),
}


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_a_line_of_dcgm_has_the_shape_of_a_real_one(name):
    metric, labels = _SHAPES[name]
    line = re.compile(rf"{metric}\{{{labels}\}} \S+ {_STAMP}")
    lines = text_of(small(name), metric).splitlines()
    assert any(line.fullmatch(one) for one in lines), lines[1]


def test_of_a_shared_gpu_4_8_shows_each_pod_and_besides_the_gpu_which_is_their_sum():
    shown = small("exporter-4.8-per-process")
    nonsense = {(one.uuid, one.time) for one in shown.glitches() if one.metric == "DCGM_FI_DEV_FB_USED"}
    whole: dict[tuple[str, float], float] = {}
    pods: dict[tuple[str, float], dict[str, float]] = defaultdict(dict)
    for series in shown.raw("DCGM_FI_DEV_FB_USED"):
        for time, value in zip(series.times.tolist(), series.values.tolist(), strict=True):
            key = (series.labels["UUID"], time)
            if "pod" in series.labels:
                pods[key][series.labels["pod_uid"]] = value
            else:
                whole[key] = value
    assert pods.keys() <= whole.keys()
    assert any(len(own) > 1 for own in pods.values())
    assert all(sum(own.values()) == whole[key] for key, own in pods.items() if key not in nonsense)


def test_text_says_what_the_series_say(shown):
    names = "kube_pod_status_phase|kube_pod_completion_time|up|DCGM_.*"
    read: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for line in text_of(shown, names).splitlines():
        if not line.startswith("#"):
            labels, value, time = re.fullmatch(r"(\S+?\{.*\}) (\S+) (\S+)", line).groups()
            read[labels].append((float(time), float(value)))
    series = shown.raw(names)
    assert len(series) == len(read)
    for one, samples in zip(series, read.values(), strict=True):
        times, values = np.array(samples).T
        np.testing.assert_array_equal(times, one.times)
        np.testing.assert_array_equal(values, one.values)


def test_text_has_one_block_for_each_metric_and_an_end(shown):
    lines = text_of(shown, "kube_job_.*|DCGM_.*").splitlines()
    names = [line.split("{")[0] for line in lines if not line.startswith("#")]
    blocks = [name for before, name in zip(["", *names[:-1]], names, strict=True) if name != before]
    assert len(blocks) == len(set(blocks))
    assert lines[-1] == "# EOF"


def test_no_series_is_there_twice_and_times_ascend(shown):
    for name in shown.names:
        found = shown.family(name)
        assert len({tuple(sorted(series.labels.items())) for series in found}) == len(found), name
        for series in found:
            assert (np.diff(series.times) > 0).all()
            assert len(series.times) == len(series.values) > 0
            assert all(series.labels.values())


def test_a_seed_is_a_text_byte_for_byte(shown):
    again = Telemetry(a_world(shown.world.spec), shown.dialect)
    assert text_of(again, "kube_pod_.*|DCGM_.*") == text_of(shown, "kube_pod_.*|DCGM_.*")


def test_there_are_as_many_lines_as_scrapes_saw_something(shown):
    scrapes = shown.scrapes().of(KSM_JOB)
    pods = shown.world.pods
    alive = sum(int(((scrapes >= pod.created) & (scrapes < (pod.deleted or math.inf))).sum()) for pod in pods)
    written = shown.write_to(io.StringIO(), "kube_pod_created")
    assert written.lines == alive + 2
    assert shown.write_to(io.StringIO(), "kube_pod_status_phase").lines == 5 * alive + 2


def test_a_pod_is_in_one_phase_at_a_time(shown):
    sums: dict[tuple[str, float], float] = defaultdict(float)
    for series in shown.raw("kube_pod_status_phase"):
        for time, value in zip(series.times, series.values, strict=True):
            sums[series.labels["uid"], time] += value
    assert set(sums.values()) == {1.0}


def test_an_end_is_shown_of_what_ended_but_not_of_what_was_deleted_or_evicted():
    shown = small("exporter-4.9-renamed")
    ends = {series.labels["uid"]: series.values[-1] for series in shown.raw("kube_pod_completion_time")}
    for one in expected(shown):
        for pod in one.work.pods:
            if pod.ended is None and not any(box.ended for box in pod.containers):
                assert pod.uid not in ends
            if pod.reason == "Evicted":
                assert pod.uid not in ends
        if one.job is not None and one.end_within == 0 and one.job.outcome in {Outcome.COMPLETED, Outcome.FAILED}:
            assert one.job.end.timestamp() in {ends.get(pod.uid) for pod in one.work.pods}


def test_a_helpers_end_is_shown_while_the_pod_runs():
    shown = small("exporter-4.9-renamed")
    (pod,) = [pod for pod in shown.world.pods if len(pod.containers) > 1 and not pod.containers[0].init][:1]
    (series,) = shown.raw("kube_pod_completion_time", uid=pod.uid)
    (phase,) = shown.raw("kube_pod_status_phase", uid=pod.uid, phase="Running")
    running = phase.times[phase.values == 1.0]
    assert series.times[0] <= running[-1]
    assert series.values[0] < series.values[-1]


def test_a_start_moves_with_a_restart():
    shown = small("exporter-4.9-renamed")
    pod = next(pod for pod in shown.world.pods if len(pod.attempts) > 1 and pod.ended is not None)
    (series,) = shown.raw("kube_pod_container_state_started", uid=pod.uid)
    assert set(series.values) <= {one.start for one in pod.attempts}
    assert len(set(series.values)) > 1
    (restarts,) = shown.raw("kube_pod_container_status_restarts_total", uid=pod.uid)
    assert restarts.values[-1] == len(pod.attempts) - 1


def test_a_jobs_start_is_reset_when_it_resumes():
    shown = small("exporter-4.9-renamed")
    one = next(one for one in shown.world.objects if len(one.starts) > 1)
    (series,) = shown.raw("kube_job_status_start_time", namespace=one.namespace, job_name=one.name)
    assert len(set(series.values)) > 1
    (suspended,) = shown.raw("kube_job_status_suspended", namespace=one.namespace, job_name=one.name)
    there = set(series.times)
    assert all((time in there) == (value == 0.0) for time, value in zip(suspended.times, suspended.values, strict=True))


def test_a_name_used_again_is_one_series_of_two_jobs():
    shown = small("exporter-4.9-renamed")
    names = [(one.namespace, one.name) for one in shown.world.objects]
    again = min(name for name in names if names.count(name) > 1)
    (series,) = shown.raw("kube_job_created", namespace=again[0], job_name=again[1])
    assert len(set(series.values)) == 2


def test_asks_of_a_pod_that_ended_are_still_shown():
    shown = small("exporter-4.9-renamed")
    pod = next(pod for pod in shown.world.pods if pod.ended and (pod.deleted or shown.world.end) - pod.ended > 900)
    series = shown.raw("kube_pod_container_resource_requests", uid=pod.uid, node=".+")
    assert series[0].times[-1] > pod.ended + 600
    assert series[0].labels["resource"] == "nvidia_com_gpu"


def test_copies_add_up_to_too_much_and_own_values_do_not():
    copies, own = small("exporter-4.5-time-sliced"), small("exporter-4.8-per-process")
    assert _most_by_device(copies, "DCGM_FI_DEV_GPU_UTIL") > 100
    assert _most_by_device(own, "DCGM_FI_DEV_GPU_UTIL") <= 100


def _most_by_device(shown: Telemetry, name: str) -> float:
    nonsense = {(one.uuid, one.time) for one in shown.glitches() if one.metric == name}
    sums: dict[tuple[str, float], float] = defaultdict(float)
    slots: set[tuple[str, str, float]] = set()
    for series in shown.raw(name, pod=".+"):
        for time, value in zip(series.times, series.values, strict=True):
            key = (series.labels["UUID"], float(time))
            # A pod with several slots has a line for each; of own values each says all that is its.
            mine = (
                (series.labels["UUID"], series.labels["pod_uid"], float(time)) if "pod_uid" in series.labels else None
            )
            if key not in nonsense and (mine is None or mine not in slots):
                sums[key] += value
                if mine is not None:
                    slots.add(mine)
    return max(sums.values())


def test_nothing_but_the_told_samples_is_nonsense(shown):
    limits = {Quantity.BUSY: 1.0, Quantity.ENGINE: 1.0, Quantity.MEMORY: 41_000.0, Quantity.ENERGY: 1e9}
    told = {(one.metric, one.uuid, str(one.instance or ""), one.time) for one in shown.glitches()}
    found = set()
    for name, metric in shown.dialect.metrics.items():
        for series in shown.raw(name):
            bad = ~(series.values <= limits[metric.quantity] * metric.scale + 1e-9)
            where = (name, series.labels["UUID"], series.labels.get("GPU_I_ID", ""))
            found |= {(*where, float(time)) for time in series.times[bad]}
    assert found == told
    assert told


def test_an_answer_takes_the_last_sample_of_each_step():
    series = Series({}, np.array([10.0, 20.0, 70.0, 200.0]), np.array([1.0, 2.0, 3.0, 4.0]))
    answer = _at_steps(series, np.array([0.0, 60.0, 120.0, 180.0, 240.0]), 60.0)
    assert answer.times.tolist() == [60.0, 120.0, 240.0]
    assert answer.values.tolist() == [2.0, 3.0, 4.0]
    # A sample as old as the step is no longer in it, one at the very moment is.
    assert _at_steps(series, np.array([70.0, 130.0]), 60.0).times.tolist() == [70.0]


def test_a_scrape_each_step_leaves_no_step_empty(shown):
    world = shown.world
    (series,) = [one for one in shown.as_series("up", world.start + 60, world.end, 60) if one.labels["job"] == KSM_JOB]
    assert len(series.times) == int((world.end - world.start) / 60)
    assert len(kube_state_scrapes(shown)) == len(series.times)


def test_labels_are_moved_aside_where_prometheus_is_told_not_to_honour_them():
    shown = small("exporter-3.3-relabelled")
    (pod, *_) = shown.raw("kube_pod_created")
    assert {"exported_namespace", "exported_pod", "uid"} <= set(pod.labels)
    assert pod.labels["namespace"] == "monitoring"
    (node, *_) = shown.raw("kube_node_created")
    assert node.labels["node"].startswith("ip-10-0-")


def test_a_world_cut_otherwise_is_refused():
    with pytest.raises(ValueError, match="mig"):
        Telemetry(small("hami").world, DIALECTS["exporter-4.5-mig"])
