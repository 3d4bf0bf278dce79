"""Placing pods one by one: what is stranded, what is wasted, and that nothing is given away twice."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.packing import MILLI, HostShape, PodShape
from advisor.errors import Refused
from advisor.planning.packing import Packer, Placed
from advisor.planning.packing_costs import BestFit, FragmentationGradient, StrandedAndWasted, UsualPods
from advisor.planning.packing_life import NodeLives
from advisor.planning.packing_state import NodeStates, PackingState

HALF = PodShape(cpu_milli=4000, gpus=1, gpu_milli=500)
WHOLE = PodShape(cpu_milli=8000, gpus=1, gpu_milli=MILLI)
EIGHT = PodShape(cpu_milli=90_000, gpus=8, gpu_milli=MILLI)
PLAIN = PodShape(cpu_milli=2000)

shapes = st.one_of(
    st.builds(PodShape, cpu_milli=st.integers(0, 40_000), memory_mib=st.integers(0, 9000)),
    st.builds(
        PodShape, cpu_milli=st.integers(0, 40_000), gpus=st.just(1), gpu_milli=st.sampled_from([100, 250, 500, 700])
    ),
    st.builds(PodShape, cpu_milli=st.integers(0, 96_000), gpus=st.integers(1, 8), gpu_milli=st.just(MILLI)),
    st.builds(PodShape, gpus=st.just(2), gpu_milli=st.sampled_from([300, 600]), kinds=st.just(("T4",))),
)
hosts = st.builds(
    HostShape,
    name=st.just("node"),
    cpu_milli=st.integers(0, 128_000),
    memory_mib=st.integers(0, 20_000),
    gpus=st.integers(0, 8),
    kind=st.sampled_from(["", "T4", "A10"]),
)


def a_host(gpus: int = 8, cpus: int = 96, kind: str = "") -> HostShape:
    return HostShape(name=f"{gpus}x{cpus}", cpu_milli=1000 * cpus, memory_mib=10**6, gpus=gpus, kind=kind)


def states(*nodes: tuple[int, list[int]]) -> NodeStates:
    return NodeStates(np.array([cpu for cpu, _ in nodes]), np.array([gpus for _, gpus in nodes]))


def slow_fragmentation(usual: UsualPods, cpu: int, gpus: list[int]) -> float:
    """By the words of the definition: shape by shape, GPU by GPU."""
    total = 0.0
    for shape, share in zip(usual.shapes, usual.shares, strict=True):
        fitting = [free for free in gpus if shape.gpus and free >= shape.gpu_milli]
        can_host = bool(shape.gpus) and len(fitting) >= shape.gpus and cpu >= shape.cpu_milli
        total += share * (sum(gpus) - sum(fitting) if can_host else sum(gpus))
    return total


@given(
    counts=st.dictionaries(shapes, st.integers(1, 9), min_size=1, max_size=6),
    nodes=st.lists(
        st.tuples(st.integers(0, 128_000), st.lists(st.integers(0, 1000), min_size=4, max_size=4)), min_size=1
    ),
)
def test_fragmentation_is_what_its_definition_says(counts, nodes):
    usual = UsualPods.of(counts)

    found = usual.fragmentation(states(*nodes))

    assert found == pytest.approx([slow_fragmentation(usual, cpu, gpus) for cpu, gpus in nodes])


def test_usual_pods_are_the_commonest_that_make_up_95_per_cent():
    usual = UsualPods.of({HALF: 90, WHOLE: 6, EIGHT: 4})

    assert usual.shapes == (HALF, WHOLE)
    assert usual.shares == pytest.approx([90 / 96, 6 / 96])
    # 90 x 4 + 6 x 8 + 4 x 90 cores over 90 x .5 + 6 + 32 GPUs.
    assert usual.cpu_per_gpu == pytest.approx(1000 * 768 / 83)


def test_the_waste_of_a_part_of_a_gpu_by_hand():
    """Only halves come: 700 holds one and loses 200, 500 and 1000 lose nothing, 499 nothing can use."""
    waste = UsualPods.of({HALF: 1}).waste()

    assert waste[[0, 499, 500, 700, 999, 1000]] == pytest.approx([0, 499, 0, 200, 499, 0])


def test_waste_weighs_what_fits_against_what_leaves_it():
    """Halves and wholes alike, 600 free: a half leaves 100 (weight .5), a whole leaves it with chance .2 (600)."""
    waste = UsualPods.of({HALF: 1, WHOLE: 1}).waste()

    assert waste[600] == pytest.approx((0.5 * 100 + 0.2 * 0.5 * 600) / (0.5 + 0.2 * 0.5))


@pytest.mark.parametrize("which", ["best", "gradient", "ours"])
def test_a_half_joins_the_other_half(which):
    usual = UsualPods.of({HALF: 3, WHOLE: 3})
    cost = {"best": BestFit(), "gradient": FragmentationGradient(usual), "ours": StrandedAndWasted(usual)}[which]
    packer = Packer([a_host(), a_host()], cost)
    packer.put(HALF, 1)

    placed = packer.place(HALF)

    assert placed is not None
    assert placed.row == 1
    assert packer.state.gpu[1].tolist() == [0] + 7 * [MILLI]


def test_gpus_are_not_stranded_on_a_node_without_cpu():
    """The last CPUs of the small node would strand its second GPU; best fit takes them, the advisor does not."""
    usual = UsualPods.of({WHOLE: 1})
    greedy = PodShape(cpu_milli=16_000, gpus=1, gpu_milli=MILLI)
    rows = {}
    for name, cost in {"best": BestFit(), "ours": StrandedAndWasted(usual)}.items():
        placed = Packer([a_host(gpus=2, cpus=16), a_host()], cost).place(greedy)
        assert placed is not None
        rows[name] = placed.row

    assert rows == {"best": 0, "ours": 1}


def test_a_pod_that_fits_nowhere_is_not_placed():
    packer = Packer([a_host(gpus=4)], BestFit())

    assert packer.place(EIGHT) is None
    assert packer.place(PodShape(gpus=1, gpu_milli=500, kinds=("T4",))) is None
    assert Packer([], BestFit()).place(PLAIN) is None
    assert packer.state.allocated_gpus == 0


@given(nodes=st.lists(hosts, min_size=1, max_size=6), pods=st.lists(shapes, max_size=40), seed=st.integers(0, 99))
def test_never_over_capacity_and_all_comes_back(nodes, pods, seed):
    rng = np.random.default_rng(seed)
    packer = Packer(nodes, StrandedAndWasted(UsualPods.of(Counter(pods or [PLAIN]))))
    whole = PackingState(nodes)
    placed: list[Placed] = []
    for shape in pods:
        if placed and rng.random() < 0.4:
            packer.remove(placed.pop(int(rng.integers(len(placed)))))
        found = packer.place(shape)
        if found is not None:
            placed.append(found)
            assert found.taken.sum() == shape.total_gpu_milli
            assert not shape.kinds or nodes[found.row].kind in shape.kinds
        assert min(packer.state.cpu.min(), packer.state.memory.min(), packer.state.gpu.min()) >= 0
    for each in placed:
        packer.remove(each)
    assert (packer.state.gpu == whole.gpu).all()
    assert (packer.state.cpu == whole.cpu).all()
    assert (packer.state.memory == whole.memory).all()


@given(nodes=st.lists(hosts, min_size=1, max_size=5), pods=st.lists(shapes, min_size=1, max_size=30))
def test_remembered_costs_are_those_computed_anew(nodes, pods):
    usual = UsualPods.of(Counter(pods))
    packer = Packer(nodes, FragmentationGradient(usual))
    for shape in pods:
        packer.place(shape)
        fresh = Packer(nodes, FragmentationGradient(usual))
        fresh.state.cpu[:], fresh.state.gpu[:] = packer.state.cpu, packer.state.gpu
        fresh.state.memory[:] = packer.state.memory
        assert packer.costs(shape).tolist() == fresh.costs(shape).tolist()


@pytest.mark.parametrize(
    "wrong",
    [
        {"cpu_milli": -1},
        {"gpus": 1, "gpu_milli": 0},
        {"gpus": 1, "gpu_milli": 1001},
        {"gpus": 0, "gpu_milli": 5},
        {"gpus": -1},
    ],
)
def test_a_shape_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(Refused):
        PodShape(**wrong)


def slow_extension(tasks: list[tuple[float, float]], median: float, sd: float) -> float:
    """Monte Carlo of the time by which a newcomer outlasts all others, given how long they have run."""
    rng = np.random.default_rng(0)
    draws = 200_000
    last = np.zeros(draws)
    for age, predicted in tasks:
        lasting = predicted * np.exp(sd * rng.normal(size=20 * draws))
        kept = lasting[lasting > age][:draws] - age
        last = np.maximum(last, rng.choice(kept, draws))
    newcomer = median * np.exp(sd * rng.normal(size=draws))
    return float(np.maximum(0.0, newcomer - last).mean() / 3600)


def test_the_expected_extension_is_that_of_a_simulation():
    lives = NodeLives(3, 1.0)
    lives.add(0, 1, 0.0, 600.0)
    lives.add(0, 2, 300.0, 7200.0)
    lives.add(1, 3, 500.0, 60.0)

    found = lives.extension_hours(np.array([0, 1, 2]), 900.0, 3600.0)

    expected = [slow_extension(t, 3600.0, 1.0) for t in ([(900.0, 600.0), (600.0, 7200.0)], [(400.0, 60.0)], [])]
    # Fourteen doubling cells up to three days against draws without end.
    assert found == pytest.approx(expected, rel=0.12)


def test_with_exact_ends_the_extension_is_the_time_alone():
    lives = NodeLives(2, 0.0)
    lives.add(0, 1, 0.0, 3600.0)

    assert lives.extension_hours(np.array([0, 1]), 1800.0, 7200.0) == pytest.approx([1.5, 2.0])
    lives.remove(0, 1)
    assert lives.is_empty(0)
