"""Slurm's small languages: lengths of time, states, resources, array ids."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.telemetry.interpret import Unfit
from advisor.telemetry.slurm_arrays import JobIds, WaitingArray, is_step, job_ids, usable_at_once
from advisor.telemetry.slurm_fields import Fate, GpuAsk, count_in, fate_of, gpus_in, length_seconds

# Texts near the languages that are read, and texts that are anything at all.
NEAR = st.one_of(
    st.text(max_size=40),
    st.text(alphabet="0123456789-:.,=[]()%_+/ gpuresmigb²٣", max_size=40),
    st.from_regex(r"[0-9]{1,12}_\[[0-9,:%-]{0,12}\]", fullmatch=True),
    st.from_regex(r"(gres/)?gpu(mem|util)?(:[a-z0-9.]{1,6})?[:=][0-9]{0,25}(,cpu=1)?", fullmatch=True),
)


@pytest.mark.parametrize(
    "text, seconds",
    [
        ("1-02:03:04", 93_784.0),
        ("02:03:04", 7_384.0),
        ("00:00:00", 0.0),
        ("26:00:00", 93_600.0),
        ("03:04.500", 184.5),
        ("2-00:00:00", 172_800.0),
        ("1-02:03", 93_780.0),
        ("UNLIMITED", None),
        ("Partition_Limit", None),
        ("INVALID", None),
        ("Unknown", None),
        ("", None),
        ("60", None),
        ("999999999-00:00:00", None),
        ("-1:00:00", None),
    ],
)
def test_a_length_of_time_is_read_to_the_second_or_is_none(text, seconds):
    assert length_seconds(text) == seconds


@given(st.integers(0, 100), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_every_length_that_slurm_writes_is_read_back(days, hours, minutes, seconds):
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    clock = f"{hours:02}:{minutes:02}:{seconds:02}"
    assert length_seconds(f"{days}-{clock}") == total
    if not days:
        assert length_seconds(clock) == total


@pytest.mark.parametrize(
    "state, fate",
    [
        ("COMPLETED", Fate.COMPLETED),
        ("FAILED", Fate.FAILED),
        ("OUT_OF_MEMORY", Fate.FAILED),
        ("OUT_OF_ME+", Fate.FAILED),
        ("DEADLINE", Fate.FAILED),
        ("BOOT_FAIL", Fate.FAILED),
        ("LAUNCH_FAILED", Fate.FAILED),
        ("CANCELLED", Fate.CANCELLED),
        ("CANCELLED+", Fate.CANCELLED),
        ("CANCELLED by 1001", Fate.CANCELLED),
        ("TIMEOUT", Fate.CUT_OFF),
        ("NODE_FAIL", Fate.CUT_OFF),
        ("PREEMPTED", Fate.CUT_OFF),
        ("REQUEUED", Fate.REQUEUED),
        ("REQUEUE_H+", Fate.REQUEUED),
        ("SPECIAL_EXIT", Fate.REQUEUED),
        ("REVOKED", Fate.REVOKED),
        ("RUNNING", Fate.RUNS),
        ("SUSPENDED", Fate.RUNS),
        ("COMPLETING", Fate.RUNS),
        ("CONFIGURI+", Fate.RUNS),
        ("PENDING", Fate.WAITS),
        ("RESV_DEL_HOLD", Fate.WAITS),
    ],
)
def test_every_state_has_a_fate_whatever_follows_it(state, fate):
    assert fate_of(state) is fate


@pytest.mark.parametrize("state", ["", "DONE", "+", "C+", "COM"])
def test_a_word_that_is_no_state_is_counted_under_itself(state):
    with pytest.raises(Unfit, match="none of Slurm's") as unfit:
        fate_of(state)
    assert unfit.value.reason == f"unknown_outcome:{state}"


@pytest.mark.parametrize(
    "resources, ask",
    [
        ("billing=8,cpu=8,gres/gpu:a100=4,gres/gpu=4,mem=64G,node=1", GpuAsk(4, "a100")),
        ("gres/gpu=4,gres/gpu:a100=4", GpuAsk(4, "a100")),
        ("gres/gpu:v100=2,gres/gpu:t4=1", GpuAsk(3, None, mixed=True)),
        ("gres/gpu=3,gres/gpu:v100=2,gres/gpu:t4=1", GpuAsk(3, None, mixed=True)),
        ("gres/gpu=3,gres/gpu:a100=2", GpuAsk(3, None, mixed=True)),
        ("gres/gpu=2", GpuAsk(2)),
        ("gres/gpu:a100:4", GpuAsk(4, "a100")),
        ("gres/gpu:4", GpuAsk(4)),
        ("gres:gpu:a100:4", GpuAsk(4, "a100")),
        ("gpu:4", GpuAsk(4)),
        ("gpu:a100:4", GpuAsk(4, "a100")),
        ("gpu:a100:4(S:0,1),craynetwork:1", GpuAsk(4, "a100")),
        ("gpu", GpuAsk(1)),
        ("gpu:a100", GpuAsk(1, "a100")),
        ("gres/gpu:3090=2", GpuAsk(2, "3090")),
        ("gres/gpu:A100=1", GpuAsk(1, "a100")),
        ("gres/gpu=0", GpuAsk()),
        ("billing=30,cpu=4,gres/gpumem=40G,gres/gpuutil=93", GpuAsk()),
        ("license/gpu=3,fs/disk=4", GpuAsk()),
        ("", GpuAsk()),
        ("gres/shard=2", GpuAsk(shared=True)),
        ("gres/mps:a100=50", GpuAsk(shared=True)),
        ("gres/gpu=2,gres/gpu:1g.10gb=2", GpuAsk(shared=True)),
        ("gres/gpu:nvidia_a100_80gb_pcie_3g.40gb=1", GpuAsk(shared=True)),
        ("gres/gpu:nvidia_a100_80gb_pcie=1", GpuAsk(1, "nvidia_a100_80gb_pcie")),
        ("gres/gpu=2,gres/gpu:a100=1,gres/gpu:1g.5gb=1", GpuAsk(1, "a100", shared=True)),
    ],
)
def test_gpus_are_counted_once_each_and_nothing_else_is_one(resources, ask):
    """Field report A12: a type and the total name the same GPUs, types add up, other resources are none."""
    assert gpus_in(resources) == ask


@pytest.mark.parametrize("resources", ["gres/gpu=", "gres/gpu=x", "gres/gpu=-1", "gres/gpu=2000000", "gres/gpu=²"])
def test_a_number_of_gpus_that_is_none_is_counted(resources):
    with pytest.raises(Unfit) as unfit:
        gpus_in(resources)
    assert unfit.value.reason == "bad_number"


@pytest.mark.parametrize(
    "text, step",
    [
        ("123", False),
        ("123_4", False),
        ("123_[1,2,...]", False),
        ("123.batch", True),
        ("123.extern", True),
        ("123.0", True),
        ("123_4.0", True),
        ("123+0.batch", True),
    ],
)
def test_a_step_is_known_by_its_id(text, step):
    assert is_step(text) is step


@pytest.mark.parametrize(
    "text, ids",
    [
        ("123", JobIds("123", ("123",))),
        ("123_4", JobIds("123", ("123_4",))),
        ("123+1", JobIds("123", ("123+1",))),
        ("8_[3]", JobIds("8", ("8_3",))),
        ("8_[1-3]", JobIds("8", ("8_1", "8_2", "8_3"))),
        ("8_[1,4,9-15:2]", JobIds("8", ("8_1", "8_4", "8_9", "8_11", "8_13", "8_15"))),
        ("8_[1-2,2-3%4]", JobIds("8", ("8_1", "8_2", "8_3"), 4)),
        ("8_[1-2%0]", JobIds("8", ("8_1", "8_2"))),
    ],
)
def test_an_id_stands_for_its_tasks(text, ids):
    assert job_ids(text) == ids


@pytest.mark.parametrize(
    "text, reason",
    [
        ("", "no_id"),
        ("abc", "bad_id"),
        ("8_*", "bad_id"),
        ("8_[]", "bad_id"),
        ("8_[3-1]", "bad_id"),
        ("8_[1-9:0]", "bad_id"),
        ("8_[1,3,5,...]", "array_cut_short"),
        ("8_[0-4000000]", "array_too_large"),
        ("8_[0-99999,0-99999]", "array_too_large"),
    ],
)
def test_an_id_that_stands_for_no_jobs_is_counted(text, reason):
    with pytest.raises(Unfit) as unfit:
        job_ids(text)
    assert unfit.value.reason == reason


@given(
    st.lists(
        st.one_of(
            st.integers(0, 300).map(lambda task: (task, task, 1)),
            st.tuples(st.integers(0, 300), st.integers(0, 300), st.integers(1, 9)).map(
                lambda each: (min(each[:2]), max(each[:2]), each[2])
            ),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_an_expression_has_as_many_tasks_as_counting_them_one_by_one_gives(ranges):
    text = ",".join(str(a) if a == b else f"{a}-{b}" + (f":{s}" if s > 1 else "") for a, b, s in ranges)
    counted = {task for task in range(301) if any(a <= task <= b and (task - a) % s == 0 for a, b, s in ranges)}
    ids = job_ids(f"7_[{text}]").ids
    assert len(ids) == len(set(ids))
    assert set(ids) == {f"7_{task}" for task in counted}


@given(NEAR)
def test_no_text_is_worse_than_unfit(text):
    assert count_in(text) is None or count_in(text) >= 0
    length = length_seconds(text)
    assert length is None or 0 <= length <= 1e10
    is_step(text)
    for read in (fate_of, gpus_in, job_ids):
        with suppress(Unfit):
            read(text)


def test_throttles_hold_back_what_could_be_used_at_once():
    """Field report A13: 10 tasks, 100 of which 4 may run, and 6, of 2 GPUs each: 20 + 8 + 12 = 40."""
    arrays = [
        WaitingArray(tasks=len(ids.ids), gpus=2.0, throttle=ids.throttle)
        for ids in map(job_ids, ("8123_[1-10]", "8124_[0-99%4]", "8125_[1,4,9-15:2]"))
    ]
    assert [array.tasks for array in arrays] == [10, 100, 6]
    assert [array.usable_gpus for array in arrays] == [20.0, 8.0, 12.0]
    assert usable_at_once(arrays) == 40.0


@pytest.mark.parametrize("running, usable", [(0, 8.0), (3, 2.0), (4, 0.0), (9, 0.0)])
def test_tasks_that_run_use_up_the_throttle(running, usable):
    assert WaitingArray(tasks=100, gpus=2.0, throttle=4, running=running).usable_gpus == usable
