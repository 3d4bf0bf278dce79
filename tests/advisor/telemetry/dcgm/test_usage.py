"""What a job did with its GPUs, told from what pods were shown on which device."""

from __future__ import annotations

import pytest

from advisor.domain.usage import ComputeSource
from advisor.telemetry.dcgm import normalise
from advisor.telemetry.dcgm.tracks import Carried
from advisor.telemetry.dcgm.usage import JobPods, PodSpan, UsageMeter
from tests.advisor.telemetry.dcgm.exposition import MINUTE, OLD, exposed

UTIL, USED = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED"
SM, ENGINE = "DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
ENERGY, POWER = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "DCGM_FI_DEV_POWER_USAGE"
OTHER = OLD.replace("GPU-a", "GPU-b")
MIB = 2.0**20


def pod(name, labels=OLD, uid=""):
    return f'{labels},namespace="ml",pod="{name}",pod_uid="{uid}"'


def a_run(name, start=0.0, end=None, *, job=None, uid=None, gpus=1.0):
    """A job of one pod; its times are in minutes."""
    last = None if end is None else end * MINUTE
    return JobPods(job or name, (PodSpan("ml", name, uid, start * MINUTE, last),), gpus)


def _meter(jobs, *lines):
    meter = UsageMeter(MINUTE)
    meter.know(jobs)
    meter.feed(normalise(exposed(*lines)))
    return meter


def _usage(job, *lines, others=()):
    return _meter([job, *others], *lines).take(job.job)


def test_a_job_with_a_device_to_itself():
    usage = _usage(
        a_run("a"),
        f"{UTIL}{{{pod('a')}}} 0 50 100 50",
        f"{USED}{{{pod('a')}}} 100 300 200 200",
        f"{ENERGY}{{{pod('a')}}} 1000000000 1024000000 1048000000 1072000000",
        f"{POWER}{{{pod('a')}}} 400 400 400 400",
    )
    assert (usage.compute_mean, usage.compute_p95, usage.compute_peak) == (0.5, 1.0, 1.0)
    assert (usage.compute_source, usage.estimated) == (ComputeSource.UTILISATION, False)
    assert (usage.memory_peak_bytes, usage.energy_joules, usage.idle_share) == (300 * MIB, 72_000.0, 0.25)


def test_energy_is_power_by_time_where_there_is_no_counter():
    assert _usage(a_run("a"), f"{POWER}{{{pod('a')}}} 300 500 -").energy_joules == 48_000.0


def test_only_the_time_of_the_run_counts():
    """The label is there before the containers start, and lingers after they have ended."""
    usage = _usage(a_run("a", 1, 3), f"{UTIL}{{{pod('a')}}} 10 50 60 90 90")
    assert usage.compute_mean == pytest.approx(0.55)


def test_a_finished_pod_that_is_still_listed_shares_nothing():
    usage = _usage(
        a_run("b", 2),
        f"{UTIL}{{{pod('a')}}} 90 90 - 40 -",
        f"{UTIL}{{{pod('b')}}} - - 40 - 40",
        others=[a_run("a", 0, 2)],
    )
    assert (usage.compute_mean, usage.estimated) == (pytest.approx(0.4), False)


def test_four_pods_that_all_show_the_device_get_a_quarter_each_as_an_estimate():
    """Field report A08: the jobs together did what the device did, and each part is marked as a guess."""
    names = ("a", "b", "c", "d")
    lines = [f"{UTIL}{{{pod(name)}}} 62 62" for name in names] + [f"{USED}{{{pod(name)}}} 4096 4096" for name in names]
    meter = _meter([a_run(name, gpus=0.25) for name in names], *lines)
    usages = [meter.take(name) for name in names]
    assert [usage.compute_mean for usage in usages] == [pytest.approx(0.155)] * 4
    assert [usage.memory_peak_bytes for usage in usages] == [1024 * MIB] * 4
    assert all(usage.estimated for usage in usages)


def test_a_pod_of_no_known_job_shares_too():
    usage = _usage(a_run("a"), f"{UTIL}{{{pod('a')}}} 60 60", f"{UTIL}{{{pod('service')}}} 60 60")
    assert (usage.compute_mean, usage.estimated) == (pytest.approx(0.3), True)


def test_values_per_process_are_no_estimate_and_come_before_a_finer_source_that_is_one():
    lines = (
        f"{UTIL}{{{OLD}}} 50 60",
        f"{UTIL}{{{pod('a')}}} 10 20",
        f"{UTIL}{{{pod('b')}}} 40 40",
        f"{SM}{{{pod('a')}}} 0.3 0.3",
        f"{SM}{{{pod('b')}}} 0.3 0.3",
    )
    usage = _usage(a_run("a"), *lines, others=[a_run("b")])
    assert (usage.compute_source, usage.compute_mean) == (ComputeSource.UTILISATION, pytest.approx(0.15))
    assert not usage.estimated


def test_a_device_whose_owner_flips_tells_nothing_of_either():
    meter = _meter([a_run("a"), a_run("b")], f"{UTIL}{{{pod('a')}}} 60 - 60 - 60", f"{UTIL}{{{pod('b')}}} - 60 - 60 -")
    for job in ("a", "b"):
        usage = meter.take(job)
        assert (usage.compute_mean, usage.compute_source, usage.energy_joules) == (None, None, None)


def test_an_owner_that_flips_where_one_chunk_ends_is_seen_to_flip():
    meter = UsageMeter(MINUTE)
    meter.know([a_run("a"), a_run("b")])
    first = normalise(exposed(f"{UTIL}{{{pod('a')}}} 60 60"))
    meter.feed(first)
    meter.feed(normalise(exposed(f"{UTIL}{{{pod('b')}}} 60 60", begin=2 * MINUTE), first.carried))
    meter.feed(normalise(exposed(f"{UTIL}{{{pod('b')}}} 60 60", begin=4 * MINUTE), first.carried))
    assert (meter.take("a").compute_mean, meter.take("b").compute_mean) == (None, None)


def test_a_device_is_shared_only_from_when_another_is_first_shown_there():
    usage = _usage(
        a_run("a"), f"{UTIL}{{{pod('a')}}} 80 80 80 40", f"{UTIL}{{{pod('b')}}} - - 80 40", others=[a_run("b")]
    )
    assert usage.compute_mean == pytest.approx((0.8 + 0.8 + 0.4 + 0.2) / 4)


def test_an_increment_of_energy_over_a_long_gap_is_nobodys():
    lines = f"{ENERGY}{{{pod('a')}}} 1000000000 1024000000 - - - 1120000000", f"{UTIL}{{{pod('a')}}} 9 9 9 9 9 9"
    assert _usage(a_run("a"), *lines).energy_joules == 24_000.0


@pytest.mark.parametrize("label,gpus,estimated", [("", 0.25, True), (',vgpu="1"', 0.25, False), ("", 1.0, False)])
def test_part_of_a_gpu_is_an_estimate_unless_the_exporter_shows_all_who_share(label, gpus, estimated):
    """By default the exporter gives the whole device to the last pod, and others may be there that it never shows."""
    usage = _usage(a_run("a", gpus=gpus), f"{UTIL}{{{pod('a')}{label}}} 60 60")
    assert (usage.compute_mean, usage.estimated) == (pytest.approx(0.6), estimated)


def test_one_hidden_device_of_two_leaves_an_estimate_from_the_other():
    usage = _usage(
        a_run("a", gpus=2.0),
        f"{UTIL}{{{pod('a')}}} 60 - 60",
        f"{UTIL}{{{pod('b')}}} - 60 -",
        f"{UTIL}{{{pod('a', OTHER)}}} 20 20 20",
        f"{POWER}{{{pod('a', OTHER)}}} 100 100 100",
        others=[a_run("b")],
    )
    assert (usage.compute_mean, usage.estimated, usage.energy_joules) == (pytest.approx(0.2), True, None)


def test_a_job_after_another_has_the_device_to_itself():
    usage = _usage(
        a_run("b", 2), f"{UTIL}{{{pod('a')}}} 90 90 - -", f"{UTIL}{{{pod('b')}}} - - 20 40", others=[a_run("a", 0, 2)]
    )
    assert (usage.compute_mean, usage.estimated) == (pytest.approx(0.3), False)


def test_a_label_that_blinks_is_carried_over_two_intervals_and_no_further():
    lines = f"{UTIL}{{{pod('a')}}} 10 - - - 50", f"{UTIL}{{{OLD}}} 10 20 30 90 50"
    assert _usage(a_run("a"), *lines).compute_mean == pytest.approx((10 + 20 + 30 + 50) / 400)


def test_a_blink_among_sharers_is_no_flip():
    usage = _usage(
        a_run("a"), f"{UTIL}{{{pod('a')}}} 60 60 60 60", f"{UTIL}{{{pod('b')}}} 60 - 60 60", others=[a_run("b")]
    )
    assert (usage.compute_mean, usage.estimated) == (pytest.approx(0.3), True)


def test_shares_are_of_all_samples_and_memory_is_of_any_one_device():
    usage = _usage(
        a_run("a", gpus=2.0),
        f"{UTIL}{{{pod('a')}}} 100 80 60 40",
        f"{UTIL}{{{pod('a', OTHER)}}} 0 20 - -",
        f"{USED}{{{pod('a')}}} 100 200",
        f"{USED}{{{pod('a', OTHER)}}} 900 20",
        f"{POWER}{{{pod('a')}}} 100 100",
        f"{POWER}{{{pod('a', OTHER)}}} 50 50",
    )
    assert (usage.compute_mean, usage.compute_peak) == (pytest.approx(0.5), pytest.approx(1.0))
    assert (usage.memory_peak_bytes, usage.energy_joules) == (900 * MIB, 18_000.0)


def test_energy_of_fewer_gpus_than_asked_for_is_not_the_jobs():
    usage = _usage(a_run("a", gpus=2.0), f"{POWER}{{{pod('a')}}} 100", f"{UTIL}{{{pod('a')}}} 100")
    assert (usage.energy_joules, usage.compute_mean) == (None, 1.0)


def test_two_pods_of_one_job_on_one_device_share_with_nobody():
    spans = tuple(PodSpan("ml", name, None, 0.0) for name in ("a", "b"))
    usage = _usage(JobPods("gang", spans), f"{UTIL}{{{pod('a')}}} 60 60", f"{UTIL}{{{pod('b')}}} 60 60")
    assert (usage.compute_mean, usage.estimated) == (pytest.approx(0.6), False)


def test_a_source_that_covered_less_than_half_is_not_the_jobs():
    lines = f"{UTIL}{{{pod('a')}}} 90 90 90 90", f"{SM}{{{pod('a')}}} 0.3 - - -"
    assert _usage(a_run("a"), *lines).compute_source is ComputeSource.UTILISATION


def test_a_mig_instance_is_told_by_its_engine():
    mig = 'UUID="GPU-a",GPU_I_ID="9",DCGM_FI_DRIVER_VERSION="550"'
    lines = (
        f"{ENGINE}{{{pod('a', mig)}}} 0.4 0.4",
        f"{SM}{{{pod('a', mig)}}} 0.1 0.1",
        f"{POWER}{{{pod('a', mig)}}} 300",
    )
    usage = _usage(a_run("a"), *lines)
    assert (usage.compute_source, usage.compute_mean) == (ComputeSource.ENGINE_ACTIVE, pytest.approx(0.4))
    assert usage.energy_joules is None


def test_a_name_used_twice_is_told_apart_by_time_and_uid():
    first, second = a_run("w-0", 0, 2, job="one", uid="u1"), a_run("w-0", 2, job="two", uid="u2")
    meter = _meter(
        [first, second],
        f"{UTIL}{{{pod('w-0', uid='u1')}}} 20 20 - -",
        f"{UTIL}{{{pod('w-0', OTHER, uid='u2')}}} - - 80 80",
        f"{USED}{{{pod('w-0', uid='u1')}}} 5 5 900 900",
    )
    one, two = meter.take("one"), meter.take("two")
    assert (one.compute_mean, one.memory_peak_bytes) == (pytest.approx(0.2), 5 * MIB)
    assert (two.compute_mean, two.memory_peak_bytes) == (pytest.approx(0.8), None)


def test_a_job_that_was_never_shown_has_no_usage():
    assert _usage(a_run("a"), f"{UTIL}{{{OLD}}} 60 60") is None
    assert UsageMeter(MINUTE).take("unheard of") is None


def test_memory_grows_with_what_runs_and_not_with_time():
    meter, carried = UsageMeter(MINUTE), Carried()
    for day in range(40):
        name, begin = f"p-{day}", day * 4.0
        meter.know([a_run(name, begin, begin + 4)])
        chunk = normalise(exposed(f"{UTIL}{{{pod(name)}}} 50 50 50 50", begin=begin * MINUTE), carried)
        carried = chunk.carried
        meter.feed(chunk)
        assert meter.take(name).compute_mean == 0.5
    assert meter.open_tallies == 0
    assert meter.remembered_runs <= 2 + 120 // 4


def test_the_p95_is_that_of_the_samples_to_a_quarter_of_a_percent():
    values = " ".join(str(at) for at in range(1, 101))
    usage = _usage(a_run("a"), f"{UTIL}{{{pod('a')}}} {values}")
    assert usage.compute_p95 == pytest.approx(0.95, abs=0.00126)


def test_what_another_leaves_behind_on_a_device_is_not_taken_for_the_jobs_own():
    """4.8.2: the device's line still shows who has just gone, and the job's own line what is its own."""
    usage = _usage(
        a_run("a"),
        f"{USED}{{{OLD}}} 900 900 900 900 900",
        f"{USED}{{{pod('a')}}} 100 100 100 100 100",
        f"{USED}{{{pod('b')}}} 800 800 - - -",
        others=[a_run("b", end=2.0)],
    )
    assert (usage.memory_peak_bytes, usage.estimated) == (100 * MIB, False)
