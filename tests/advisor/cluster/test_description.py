import textwrap
from datetime import timedelta

import pytest

from advisor.cluster import description
from advisor.cluster.description import default_description, load_description, parse_description
from advisor.domain.nodepools import Budget, Taint
from advisor.errors import Refused
from tests.builders import NOON

WHOLE = """
time = 2026-03-02T12:00:00Z

[[pools]]
name = "a100"
node_gpus = [8, 1]
gpu_kind = "a100"
consolidate_after = "3m"
consolidation_policy = "WhenEmpty"
limits = { "nvidia.com/gpu" = "512", cpu = "10k" }
budgets = [{ nodes = "10%" }, { nodes = "0", reasons = ["Empty"], schedule = "0 8 * * mon-fri", duration = "10h" }]
weight = 10
slice_minutes = 15
sharing_factor = 2
taints = [{ key = "nvidia.com/gpu", effect = "NoSchedule", value = "yes" }]
field_manager = "argocd"
owned = true
nodes = 2

[[pools]]
name = "static"
replicas = 3

[[nodes]]
name = "n1"
pool = "a100"
gpus = 1
ready = false
cordoned = true
created = "-2h"

[[workloads]]
id = "train-7"
gpus = 4
node = "a100-1"
submit = "-30m"
start = "-20m"
user = "ada"
urgent = true

[[workloads]]
id = "train-8"
gpus = 0.5
pool = "a100"
"""


def a_pool(line: str) -> str:
    return f'time = "2026-03-02T12:00:00Z"\n[[pools]]\nname = "a"\n{line}\n'


def test_a_whole_description_becomes_a_cluster():
    snapshot = parse_description(WHOLE)

    pool = snapshot.pool("a100")
    assert snapshot.time == NOON
    assert pool.node_gpus == (1, 8)
    assert pool.gpu_limit == "512"
    assert pool.budgets == (Budget("10%"), Budget("0", ("Empty",), "0 8 * * mon-fri", "10h"))
    assert pool.taints == (Taint("nvidia.com/gpu", "NoSchedule", "yes"),)
    assert (pool.slice_minutes, pool.sharing_factor, pool.weight, pool.owned) == (15.0, 2, 10, True)
    assert pool.field_managers['spec.limits["nvidia.com/gpu"]'] == ("argocd",)
    assert snapshot.pool("static").replicas == 3
    assert [(n.name, n.gpus, n.ready) for n in snapshot.nodes] == [
        ("a100-1", 8, True),
        ("a100-2", 8, True),
        ("n1", 1, False),
    ]
    assert snapshot.nodes[2].created == NOON - timedelta(hours=2)
    assert snapshot.nodes[2].gpu_kind == "a100"
    running, waiting = snapshot.workloads
    assert (running.submit, running.start) == (NOON - timedelta(minutes=30), NOON - timedelta(minutes=20))
    assert (waiting.node, waiting.start, waiting.submit) == (None, None, NOON)


def test_the_documented_example_is_a_description():
    example = textwrap.dedent(description.__doc__.partition("::\n\n")[2].partition("\nA key")[0])

    snapshot = description.parse_description(example, history_end=NOON)

    assert [pool.name for pool in snapshot.pools] == ["default"]
    assert (len(snapshot.nodes), len(snapshot.workloads)) == (13, 1)


def test_time_is_where_the_history_ends_unless_it_is_given():
    assert parse_description('[[pools]]\nname = "a"', history_end=NOON).time == NOON
    assert parse_description('time = "history"\n[[pools]]\nname = "a"', history_end=NOON).time == NOON


def test_a_time_after_the_moment_looked_from_is_refused_and_an_earlier_one_is_not():
    text = a_pool("")

    assert parse_description(text, history_end=NOON + timedelta(days=1)).time == NOON
    with pytest.raises(Refused, match=r"time: '2026-03-02T12:00:00\+00:00' is refused.*looked from.*--as-of"):
        parse_description(text, history_end=NOON - timedelta(seconds=1))


@pytest.mark.parametrize("line", ['consolidate_after = "2562047h"', 'consolidate_after = "Never"'])
def test_the_longest_keep_alive_is_one(line):
    assert parse_description(a_pool(line)).pools[0].consolidate_after in line


def test_a_byte_order_mark_is_no_mistake(tmp_path):
    file = tmp_path / "cluster.toml"
    file.write_text(a_pool(""), encoding="utf-8-sig")

    assert load_description(file).time == NOON


def test_without_a_history_the_time_must_be_given():
    with pytest.raises(Refused, match="the history is empty"):
        parse_description('[[pools]]\nname = "a"')


@pytest.mark.parametrize(
    "text, names",
    [
        ("pools = [", ["TOML"]),
        ('time = "2026-03-02T12:00:00Z"', ["pools", "at least one"]),
        ('time = "noon"\n[[pools]]\nname = "a"', ["time", "noon"]),
        ('time = "2026-03-02T12:00:00"\n[[pools]]\nname = "a"', ["time", "zone"]),
        ('time = 2026-03-02\n[[pools]]\nname = "a"', ["time"]),
        (a_pool("nods = 3"), ["pools[0].nods", "known keys are", "nodes"]),
        (a_pool('consolidate_after = "1.5h"'), ["pools[0].consolidate_after", "1.5h", "90s"]),
        (a_pool('consolidation_policy = "Always"'), ["pools[0].consolidation_policy", "WhenEmpty"]),
        (a_pool('limits = { "nvidia.com/gpu" = "7.5" }'), ["pools[0].limits", "7.5"]),
        (a_pool('limits = { "nvidia.com/gpu" = 8 }'), ["pools[0].limits.nvidia.com/gpu", "text"]),
        (a_pool('limits = { cpu = "1K" }'), ["pools[0].limits.cpu", "1K"]),
        (a_pool("nodes = -1"), ["pools[0].nodes", "0 or more"]),
        (a_pool("nodes = true"), ["pools[0].nodes", "whole number"]),
        (a_pool("nodes = 1.5"), ["pools[0].nodes", "whole number"]),
        (a_pool("node_gpus = [0]"), ["node_gpus", "at least one GPU"]),
        (a_pool('node_gpus = ["8"]'), ["pools[0].node_gpus", "whole numbers"]),
        (a_pool("slice_minutes = nan"), ["pools[0].slice_minutes", "finite"]),
        (a_pool("slice_minutes = 1e300"), ["pools[0].slice_minutes", "1e+300", "up to 10,080"]),
        (a_pool('[[workloads]]\nid = "w"\ngpus = 1e308'), ["workloads[0].gpus", "1e+308", "up to 1,000,000"]),
        (a_pool("sharing_factor = 0"), ["pools[0].sharing_factor", "1 or more"]),
        (a_pool("weight = 1\nreplicas = 2"), ["pools[0].replicas", "neither a weight nor GPU limits"]),
        (a_pool("weight = 101"), ["pools[0].weight", "1 to 100"]),
        (a_pool('budgets = [{ nodes = "110%" }]'), ["pools[0].budgets", "110%"]),
        (a_pool('budgets = [{ node = "1" }]'), ["pools[0].budgets[0].nodes", "must be given"]),
        (a_pool('taints = [{ key = "a", effect = "Never" }]'), ["pools[0].taints[0].effect", "NoSchedule"]),
        (a_pool('[[nodes]]\nname = "n"\npool = "b"'), ["nodes[0].pool", "'b'", "described pools are a"]),
        (a_pool('[[nodes]]\npool = "a"'), ["nodes[0].name", "must be given"]),
        (a_pool('[[nodes]]\nname = "n"\npool = "a"\ncreated = "2027-01-01T00:00:00Z"'), ["nodes[0].created", "after"]),
        (a_pool('[[nodes]]\nname = "n"\npool = "a"\ncreated = "-soon"'), ["nodes[0].created", "duration"]),
        (a_pool('nodes = 1\n[[nodes]]\nname = "a-1"\npool = "a"'), ["node names are unique"]),
        (a_pool('[[pools]]\nname = "a"'), ["pool names are unique"]),
        (a_pool('[[workloads]]\nid = "w"'), ["workloads[0].gpus", "must be given"]),
        (a_pool('[[workloads]]\nid = "w"\ngpus = 0'), ["workloads[0].gpus", "above 0"]),
        (a_pool('[[workloads]]\nid = "w"\ngpus = 1\nnode = "x"'), ["workload.node", "'x'"]),
        (a_pool('[[workloads]]\nid = "w"\ngpus = 1\nstart = "-1m"'), ["workloads[0].start"]),
        (a_pool('nodes = 1\n[[workloads]]\nid = "w"\ngpus = 9\nnode = "a-1"'), ["workloads.gpus", "a-1 has 8"]),
        (a_pool('[[workloads]]\nid = "w"\ngpus = 1\npool = "b"'), ["workloads[0].pool", "'b'", "pools are a"]),
        (
            a_pool('nodes = 1\n[[pools]]\nname = "b"\n[[workloads]]\nid = "w"\ngpus = 1\nnode = "a-1"\npool = "b"'),
            ["workloads[0].pool", "'b'", "a-1 is of pool a"],
        ),
        (a_pool('limits = { "nvidia.com/gpu" = "1e400" }'), ["pools[0].limits.nvidia.com/gpu", "1e400", "2^63"]),
        (a_pool('limits = { cpu = "100E" }'), ["pools[0].limits.cpu", "100E", "2^63"]),
        (a_pool('consolidate_after = "99999999h"'), ["pools[0].consolidate_after", "99999999h", "292 years", "Never"]),
        (a_pool(f'consolidate_after = "{"9" * 5000}h"'), ["pools[0].consolidate_after", "292 years"]),
        (a_pool(f"weight = {'9' * 5000}"), ["cluster file", "TOML"]),
        ("workloads = [1]\n" + a_pool(""), ["workloads", "list of tables"]),
        ('colour = "red"\n' + a_pool(""), ["colour", "known keys are nodes, pools, time, workloads"]),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_field_and_remedy(text, names):
    with pytest.raises(Refused) as refused:
        parse_description(text)
    for name in names:
        assert name in str(refused.value)


def test_a_file_is_read(tmp_path):
    file = tmp_path / "cluster.toml"
    file.write_text(WHOLE, encoding="utf-8")

    assert load_description(file) == parse_description(WHOLE)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(Refused, match="cannot be read"):
        load_description(tmp_path / "none.toml")


def test_the_assumed_cluster_holds_what_runs():
    snapshot = default_description({"vcA": 17.0, "vcB": 0.0}, NOON)

    assert [pool.name for pool in snapshot.pools] == ["vcA", "vcB"]
    assert [(n.pool, n.gpus, n.ready) for n in snapshot.nodes] == [("vcA", 8, True)] * 3
    assert snapshot.pool("vcA").consolidate_after == "180s"
    assert snapshot.pool("vcA").slice_minutes == 15.0
    assert any("assumed" in note for note in snapshot.notes)


def test_an_empty_history_still_has_a_cluster_to_assume():
    snapshot = default_description({}, NOON, node_gpus=4)

    assert [(pool.name, pool.node_gpus) for pool in snapshot.pools] == [("default", (4,))]
    assert snapshot.nodes == ()
