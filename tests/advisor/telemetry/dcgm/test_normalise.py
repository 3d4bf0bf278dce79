"""One value per device and moment, whatever stands beside it."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.domain.usage import ComputeSource
from advisor.telemetry.dcgm import normalise
from advisor.telemetry.dcgm.names import Quantity
from advisor.telemetry.dcgm.tracks import NOT_ATTRIBUTABLE, PodShare
from tests.advisor.telemetry.dcgm.exposition import A100, NEW, OLD, exposed

UTIL, USED = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED"
SM, ENGINE = "DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
ENERGY, XID = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "DCGM_FI_DEV_XID_ERRORS"
GIB = 2.0**30


def pod(name, labels=OLD):
    return f'{labels},namespace="ml",pod="{name}"'


def _only(*lines):
    (track,) = normalise(exposed(*lines)).tracks
    return track


def _reasons(chunk):
    return {each.reason: each.count for each in chunk.rejections}


def _util(track):
    return track.compute[ComputeSource.UTILISATION].values.tolist()


def test_marks_for_no_value_are_no_load():
    """Field report A07: of five samples one is a load, and the other four are counted by reason."""
    chunk = normalise(exposed(f"{UTIL}{{{OLD}}} 9223372036854775794 140737488355328 NaN +Inf 37"))
    assert _util(chunk.tracks[0]) == [0.37]
    assert _reasons(chunk) == {"blank": 2, "not_a_number": 1, "infinite": 1}
    assert all("GPU-a" in each.example for each in chunk.rejections)


def test_the_example_of_a_sample_tells_its_moment_as_people_write_it():
    chunk = normalise(exposed(f"{UTIL}{{{OLD}}} 37 NaN", f"{ENERGY}{{{OLD}}} 1000000000 900000000000"))
    examples = {each.reason: each.example for each in chunk.rejections}
    assert examples["not_a_number"].endswith(" at 1970-01-01T00:01:00Z: nan")
    assert " at 1970-01-01T00:01:00Z: " in examples["counter_jumped"]


@pytest.mark.parametrize(
    "name,value,reason",
    [
        (UTIL, "4294967295", "out_of_range"),
        (UTIL, "101.5", "out_of_range"),
        (UTIL, "-3", "out_of_range"),
        (UTIL, "2147483632", "blank"),
        (UTIL, "2147483635", "blank"),
        (UTIL, "9223372036854775792", "blank"),
        (SM, "140737488355331", "blank"),
        (USED, "9223372036854775795", "blank"),
        (USED, "-Inf", "infinite"),
        ("DCGM_FI_DEV_POWER_USAGE", "80000", "out_of_range"),
        (XID, "2147483633", "blank"),
        (ENERGY, "9223372036854775793", "blank"),
    ],
)
def test_impossible_values_are_counted_by_reason(name, value, reason):
    chunk = normalise(exposed(f"{name}{{{OLD}}} {value}"))
    assert _reasons(chunk) == {reason: 1}


def test_a_counter_passes_the_marks_of_32_bits():
    track = _only(f"{ENERGY}{{{OLD}}} 2123483633 2147483633 2171483633")
    assert track.energy.joules.tolist() == [24_000.0, 24_000.0]


def test_a_profiling_counter_just_above_one_is_one():
    assert _only(f"{SM}{{{OLD}}} 1.004").mean_compute == 1.0


def test_the_most_telling_source_is_named_and_none_is_mixed():
    track = _only(f"{UTIL}{{{OLD}}} 90 90 90", f"{ENGINE}{{{OLD}}} 0.8 0.8 0.8", f"{SM}{{{OLD}}} 0.25 - 0.75")
    assert track.compute_source is ComputeSource.SM_ACTIVE
    assert track.mean_compute == 0.5
    assert _only(f"{UTIL}{{{OLD}}} 90", f"{ENGINE}{{{OLD}}} 0.8").compute_source is ComputeSource.ENGINE_ACTIVE
    assert _only(f"{UTIL}{{{OLD}}} 90").compute_source is ComputeSource.UTILISATION
    assert _only(f"{USED}{{{OLD}}} 90").compute_source is None


def test_three_pods_that_all_show_the_device_are_one_device():
    """Field report A08: one device at 62 %, and no share of any pod's own, with the reason."""
    track = _only(*(f'{UTIL}{{{pod(f"p-{at}")},vgpu="{at}"}} 62 62' for at in range(3)))
    assert track.mean_compute == 0.62
    assert [track.share_of(each) for each in track.pods] == [PodShare(None, NOT_ATTRIBUTABLE)] * 3


def test_doubled_scrapes_and_exporters_are_never_added():
    track = _only(
        f'{UTIL}{{{OLD},instance="a",prometheus_replica="0"}} 60 61 -',
        f'{UTIL}{{{OLD},instance="a",prometheus_replica="1"}} 60 60 70',
        f'{UTIL}{{{A100.replace("n1", "other")},instance="b",job="second"}} 59 60 -',
    )
    assert _util(track) == pytest.approx([0.60, 0.61, 0.70])


def test_the_line_without_a_pod_is_the_device_even_where_a_pod_shows_more():
    track = _only(f"{UTIL}{{{OLD}}} 40 40 -", f"{UTIL}{{{pod('a')}}} 44 10 20", f"{UTIL}{{{pod('b')}}} 3 30 30")
    assert _util(track) == pytest.approx([0.40, 0.40, 0.30])


def test_replicas_of_one_pod_on_one_device_are_one_pod():
    track = _only(f'{UTIL}{{{pod("a")},vgpu="0"}} 62', f'{UTIL}{{{pod("a")},vgpu="3"}} 62')
    assert [track.share_of(each).compute for each in track.pods] == [0.62]


def test_values_per_process_are_the_pods_own_from_when_they_differ():
    first = normalise(
        exposed(f"{UTIL}{{{OLD}}} 30 50 50", f"{UTIL}{{{pod('a')}}} 0 10 20", f"{UTIL}{{{pod('b')}}} 0 35 20")
    )
    (track,) = first.tracks
    assert [each.own[Quantity.UTILISATION].values.tolist() for each in track.pods] == [
        pytest.approx([0.10, 0.20]),
        pytest.approx([0.35, 0.20]),
    ]
    assert track.share_of(track.pods[0]) == PodShare(pytest.approx(0.15), None)
    later = exposed(f"{UTIL}{{{OLD}}} 30 30", f"{UTIL}{{{pod('a')}}} 12 30", f"{UTIL}{{{pod('b')}}} 12 30", begin=300)
    (track,) = normalise(later, first.carried).tracks
    own = track.pods[0].own[Quantity.UTILISATION]
    assert (own.times.tolist(), own.values.tolist()) == ([300.0], [0.12])


def test_values_that_add_up_to_the_device_are_per_process_though_they_are_equal():
    track = _only(f"{USED}{{{OLD}}} 20100", f"{USED}{{{pod('a')}}} 10000", f"{USED}{{{pod('b')}}} 10000")
    assert [each.own[Quantity.MEMORY_USED].values.tolist() for each in track.pods] == [[10_000 * 2**20]] * 2


def test_nought_for_every_pod_of_a_busy_device_is_not_believed():
    track = _only(f"{UTIL}{{{OLD}}} 88 90", f"{UTIL}{{{pod('a')}}} 0 0", f"{UTIL}{{{pod('b')}}} 0 0")
    assert track.mean_compute == pytest.approx(0.89)
    assert all(track.share_of(each) == PodShare(None, NOT_ATTRIBUTABLE) for each in track.pods)


def test_an_owner_that_flips_from_look_to_look_owns_nothing():
    track = _only(f"{UTIL}{{{pod('a')}}} 60 - 60 -", f"{UTIL}{{{pod('b')}}} - 60 - 60")
    assert _util(track) == [0.6] * 4
    assert {track.share_of(each) for each in track.pods} == {PodShare(None, NOT_ATTRIBUTABLE)}


def test_one_pod_after_another_has_the_device_to_itself_each_time():
    track = _only(f"{UTIL}{{{pod('a')}}} 60 60 - -", f"{UTIL}{{{pod('b')}}} - - 20 40")
    assert [track.share_of(each).compute for each in track.pods] == [0.6, pytest.approx(0.3)]


def test_memory_in_all_is_free_used_and_reserved_and_bounds_what_is_used():
    chunk = normalise(
        exposed(
            f"{USED}{{{OLD}}} 10240 10240 99999 10240",
            f"DCGM_FI_DEV_FB_FREE{{{OLD}}} 30000 30000 30000 30000",
            f"DCGM_FI_DEV_FB_RESERVED{{{OLD}}} 720 720 720 720",
        )
    )
    (track,) = chunk.tracks
    assert track.memory_total_bytes == 40 * GIB
    assert track.memory_used.values.tolist() == [10 * GIB] * 3
    assert _reasons(chunk) == {"out_of_range": 1}
    (later,) = normalise(exposed(f"{USED}{{{OLD}}} 50000 10240", begin=600.0), chunk.carried).tracks
    assert later.memory_used.values.tolist() == [10 * GIB]


def test_memory_in_all_as_given_comes_first():
    track = _only(f"{USED}{{{NEW}}} {int(GIB)}", f"DCGM_FI_DEV_FB_CAPACITY_BYTES{{{NEW}}} {int(80 * GIB)}")
    assert (track.memory_total_bytes, track.memory_used.values.tolist()) == (80 * GIB, [GIB])


def test_energy_grows_across_chunks_and_begins_again_after_a_reset():
    first = normalise(exposed(f"{ENERGY}{{{OLD}}} 1000000000 1024000000"))
    second = normalise(exposed(f"{ENERGY}{{{OLD}}} 1048000000 6000000 30000000", begin=120.0), first.carried)
    assert first.tracks[0].energy.joules.tolist() == [24_000.0]
    energy = second.tracks[0].energy
    assert energy.joules.tolist() == [24_000.0, 6_000.0, 24_000.0]
    assert (energy.times.tolist(), energy.seconds.tolist()) == ([120.0, 180.0, 240.0], [60.0] * 3)


def test_energy_and_errors_are_remembered_over_a_chunk_without_them():
    first = normalise(exposed(f"{ENERGY}{{{OLD}}} 1000000000 1024000000", f"{XID}{{{OLD}}} 0 0"))
    gap = normalise(exposed(f"{UTIL}{{{OLD}}} 50 50", begin=120.0), first.carried)
    last = exposed(f"{ENERGY}{{{OLD}}} 1096000000", f"{XID}{{{OLD}}} 31", begin=240.0)
    (track,) = normalise(last, gap.carried).tracks
    assert (track.energy.joules.tolist(), track.energy.seconds.tolist()) == ([72_000.0], [180.0])
    assert [tuple(each) for each in track.xids] == [(240.0, 31)]


def test_energy_that_jumps_is_counted_and_adds_nothing():
    chunk = normalise(exposed(f"{ENERGY}{{{OLD}}} 1000000000 900000000000 1048000000 1072000000"))
    assert chunk.tracks[0].energy.joules.tolist() == [24_000.0]
    assert _reasons(chunk) == {"counter_jumped": 2}


def test_an_error_is_the_moment_the_last_code_became_another():
    first = normalise(exposed(f"{XID}{{{OLD}}} 0 0 31 31 31", f'{XID}{{{OLD},err_code="79"}} - - - - 79'))
    assert [tuple(each) for each in first.tracks[0].xids] == [(120.0, 31), (240.0, 79)]
    second = normalise(exposed(f"{XID}{{{OLD}}} 79 0 79", begin=300.0), first.carried)
    assert [tuple(each) for each in second.tracks[0].xids] == [(420.0, 79)]


def test_an_error_that_was_there_from_the_first_may_be_old():
    assert _only(f"{XID}{{{OLD}}} 31 31").xids == ()


def test_a_device_that_nobody_saw_for_a_day_is_forgotten():
    first = normalise(exposed(f"{UTIL}{{{OLD}}} 1"))
    other = exposed(f"{UTIL}{{{OLD.replace('GPU-a', 'GPU-b')}}} 1", begin=90_000.0)
    assert [device.uuid for device in normalise(other, first.carried).carried.devices] == ["GPU-b"]


def test_what_goes_in_is_left_as_it_is():
    series = exposed(f"{UTIL}{{{OLD}}} 90 NaN 300", f"{ENERGY}{{{OLD}}} 10 20 30")
    before = [(dict(one.labels), one.times.copy(), one.values.copy()) for one in series]
    normalise(series)
    for one, (labels, times, values) in zip(series, before, strict=True):
        assert dict(one.labels) == labels
        np.testing.assert_array_equal(one.times, times)
        np.testing.assert_array_equal(one.values, values)
