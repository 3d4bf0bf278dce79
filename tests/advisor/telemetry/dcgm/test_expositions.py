"""What each generation of the exporter says of itself, read as it is stored."""

from __future__ import annotations

import pytest

from advisor.domain.usage import ComputeSource
from advisor.telemetry.dcgm import normalise
from advisor.telemetry.dcgm.lines import Device, Pod
from advisor.telemetry.dcgm.names import QUANTITIES, Quantity, metric_names
from tests.advisor.telemetry.dcgm.exposition import A100, OLD, exposed


def _only(*lines, **more):
    (track,) = normalise(exposed(*lines), **more).tracks
    return track


def test_an_old_exporter_whose_host_is_its_own_pod_and_whose_pod_labels_are_empty():
    line = (
        'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-v",device="nvidia0",modelName="Tesla V100-SXM2-32GB",'
        'Hostname="nvidia-dcgm-exporter-cwbcm",DCGM_FI_DRIVER_VERSION="525.60.13",container="",namespace="",pod="",'
        'instance="10.0.0.4:9400"} 40'
    )
    track = _only(line)
    assert (track.device, track.model, track.pods) == (Device("GPU-v"), "Tesla V100-SXM2-32GB", ())
    assert track.node == "10.0.0.4"
    assert _only(line, nodes={"nvidia-dcgm-exporter-cwbcm": "gpu-1"}).node == "gpu-1"
    assert track.compute[ComputeSource.UTILISATION].values.tolist() == pytest.approx([0.4])


def test_one_pod_with_a_card_of_its_own():
    track = _only(
        'DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="3",UUID="GPU-6",pci_bus_id="00000000:B7:00.0",device="nvidia3",'
        'modelName="NVIDIA A100-SXM4-40GB",Hostname="ip-10-0-3-8.ec2.internal",DCGM_FI_DRIVER_VERSION="535.161.08",'
        'container="train",namespace="ml",pod="bert-1"} 0.8125'
    )
    (pod,) = track.pods
    assert (pod.pod, pod.container, pod.times.tolist()) == (Pod("ml", "bert-1"), "train", [0.0])
    assert (track.node, track.compute_source) == ("ip-10-0-3-8.ec2.internal", ComputeSource.ENGINE_ACTIVE)
    assert track.share_of(pod).compute == 0.8125


def test_a_mig_instance_is_a_device_of_its_own_whose_power_is_the_cards():
    labels = 'gpu="0",UUID="GPU-8",GPU_I_PROFILE="1g.5gb",Hostname="n1",DCGM_FI_DRIVER_VERSION="550",namespace="ml"'
    card, nine, ten = normalise(
        exposed(
            f'DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{labels},GPU_I_ID="9",pod="nb-1"}} 0.25',
            f'DCGM_FI_PROF_SM_ACTIVE{{{labels},GPU_I_ID="9",pod="nb-1"}} 0.1',
            f'DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{labels},GPU_I_ID="10",pod="nb-2"}} 0.75',
            f'DCGM_FI_DEV_GPU_UTIL{{{labels},GPU_I_ID="9",pod="nb-1"}} 0',
            'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-8",Hostname="n1",DCGM_FI_DRIVER_VERSION="550"} 0',
            f'DCGM_FI_DEV_POWER_USAGE{{{labels},GPU_I_ID="9",pod="nb-1"}} 300',
            f'DCGM_FI_DEV_POWER_USAGE{{{labels},GPU_I_ID="10",pod="nb-2"}} 300',
        )
    ).tracks
    assert [track.device for track in (card, nine, ten)] == [
        Device("GPU-8"),
        Device("GPU-8", "10"),
        Device("GPU-8", "9"),
    ]
    assert [track.mean_compute for track in (card, nine, ten)] == [None, 0.75, 0.25]
    assert (card.power.values.tolist(), card.pods) == ([300.0], ())
    assert not nine.power.times.size


def test_utilisation_of_a_sliced_card_is_counted_not_read():
    chunk = normalise(
        exposed(
            'DCGM_FI_DEV_GPU_UTIL{UUID="GPU-8",GPU_I_ID="9",DCGM_FI_DRIVER_VERSION="550"} 0 0',
            'DCGM_FI_PROF_GR_ENGINE_ACTIVE{UUID="GPU-8",GPU_I_ID="9",DCGM_FI_DRIVER_VERSION="550"} 0.5 0.5',
        )
    )
    assert [(each.reason, each.count) for each in chunk.rejections] == [("utilisation_under_mig", 2)]
    alone = exposed('DCGM_FI_DEV_GPU_UTIL{UUID="GPU-8",DCGM_FI_DRIVER_VERSION="550"} 0', begin=600.0)
    assert normalise(alone, chunk.carried).tracks == ()


def test_a_device_line_beside_lines_per_pod_of_a_shared_card():
    labels = 'gpu="1",UUID="GPU-1",modelName="NVIDIA H100 80GB HBM3",hostname="gpu-7",DCGM_FI_DRIVER_VERSION="570.86"'
    track = _only(
        f"DCGM_FI_DEV_FB_USED{{{labels}}} 41000",
        f'DCGM_FI_DEV_FB_USED{{{labels},container="srv",namespace="inf",pod="llm-a",pod_uid="6f",vgpu="0"}} 30000',
        f'DCGM_FI_DEV_FB_USED{{{labels},container="srv",namespace="inf",pod="llm-b",pod_uid="b2",vgpu="2"}} 10400',
    )
    assert track.node == "gpu-7"
    assert track.memory_used.values.tolist() == [41_000 * 2**20]
    assert {pod.pod: pod.own[Quantity.MEMORY_USED].values.tolist() for pod in track.pods} == {
        Pod("inf", "llm-a", "6f"): [30_000 * 2**20],
        Pod("inf", "llm-b", "b2"): [10_400 * 2**20],
    }


RENAMED = (
    f'{OLD},namespace="gpu-operator",pod="{{exporter}}",instance="10.0.3.7:9400",job="dcgm",container="{{container}}"'
)


@pytest.mark.parametrize("exporter", ["nvidia-dcgm-exporter-78z52", "gpu-metrics-x2"])
@pytest.mark.parametrize("container", ["exporter", "main"])
def test_labels_that_prometheus_renamed(exporter, container):
    """The exporter's own pod is nobody's, by its name, its container or the labels of its other series."""
    labels = RENAMED.format(exporter=exporter, container=container)
    track = _only(
        f'DCGM_FI_DEV_GPU_UTIL{{{labels},exported_namespace="inf",exported_pod="llm-a",exported_container="s"}} 87',
        f"DCGM_FI_DEV_FB_USED{{{labels}}} 87",
    )
    assert [(pod.pod, pod.container) for pod in track.pods] == [(Pod("inf", "llm-a"), "s")]


def test_that_a_target_renames_is_remembered():
    labels = RENAMED.format(exporter="gpu-metrics-x2", container="main")
    first = normalise(exposed(f'DCGM_FI_DEV_GPU_UTIL{{{labels},exported_namespace="inf",exported_pod="a"}} 87'))
    (track,) = normalise(exposed(f"DCGM_FI_DEV_GPU_UTIL{{{labels}}} 87", begin=60.0), first.carried).tracks
    assert track.pods == ()


def test_old_namespace_labels_and_a_lower_case_uuid():
    track = _only('dcgm_gpu_utilization{gpu="0",uuid="GPU-k",pod_name="p",pod_namespace="ml",container_name="c"} 12')
    assert track.device == Device("GPU-k")
    assert [(pod.pod, pod.container) for pod in track.pods] == [(Pod("ml", "p"), "c")]


def test_a_pod_that_only_reserves_for_others_holds_nothing():
    track = _only(f'DCGM_FI_DEV_GPU_UTIL{{{OLD},namespace="kai-resource-reservation",pod="gpu-reservation-x"}} 50')
    assert track.pods == ()


@pytest.mark.parametrize(
    "labels,node",
    [
        ('Hostname="n1",instance="10.0.0.1:9400"', "n1"),
        ('hostname="n2",instance="10.0.0.1:9400"', "n2"),
        ('node="n3",instance="10.0.0.1:9400"', "n3"),
        ('Hostname="dcgm-exporter-x",pod="dcgm-exporter-x",node="n4"', "n4"),
        ('Hostname="gpu-metrics-x",pod="gpu-metrics-x",instance="10.0.0.9:9400"', "mapped"),
        ('instance="10.0.0.1:9400"', "10.0.0.1"),
        ("", ""),
    ],
)
def test_the_node_is_the_best_name_there_is(labels, node):
    line = f'DCGM_FI_DEV_GPU_UTIL{{UUID="GPU-a",DCGM_FI_DRIVER_VERSION="550",{labels}}} 1'
    assert _only(line, nodes={"10.0.0.9": "mapped"}).node == node


def test_a_line_without_a_device_is_counted():
    chunk = normalise(exposed('DCGM_FI_DEV_GPU_UTIL{gpu="3"} 10 20'))
    assert [(each.reason, each.count) for each in chunk.rejections] == [("no_device", 2)]


def test_metrics_that_are_not_read_are_passed_over():
    chunk = normalise(exposed(f"DCGM_FI_DEV_MEMORY_TEMP{{{A100}}} 9223372036854775794", f"up{{{A100}}} 1"))
    assert (chunk.tracks, chunk.rejections) == ((), ())


def test_every_spelling_is_of_one_quantity():
    assert sum(len(metric_names(quantity)) for quantity in Quantity) == len(QUANTITIES)


def test_an_empty_chunk_and_a_series_without_samples():
    assert normalise([]).tracks == ()
    one = exposed(f"DCGM_FI_DEV_GPU_UTIL{{{OLD}}} 1")[0]
    assert normalise([one._replace(times=one.times[:0], values=one.values[:0])]).tracks == ()
