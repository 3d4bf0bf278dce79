import pytest
import yaml

from advisor.cluster.fields import BUDGETS, CONSOLIDATE_AFTER, CONSOLIDATION_POLICY, GPU_LIMIT, WEIGHT
from advisor.cluster.port import FIELD_MANAGER
from advisor.cluster.projection import read_buffer, read_slice_setting
from advisor.domain.nodepools import Budget, Taint, WarmBuffer
from advisor.domain.plans import Change
from advisor.errors import Refused
from advisor.reconciler.budgets import budgets_to_text
from advisor.reconciler.patches import (
    APPLY_COMMAND,
    buffer_manifests,
    pool_manifest,
    pool_patch,
    slice_manifest,
    to_yaml,
)
from tests.builders import a_node_pool


def a_change(field, new):
    return Change(object="NodePool/default", field=field, old=None, new=new, allowed=True, reasons=())


def a_manifest(pool, *changes):
    return pool_manifest(pool_patch(pool, [a_change(field, new) for field, new in changes]))


def test_a_patch_names_the_pool_and_only_what_changes():
    manifest = a_manifest(a_node_pool(weight=7), (CONSOLIDATE_AFTER, "600s"), (GPU_LIMIT, "16"))

    assert manifest == {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "default"},
        "spec": {"disruption": {"consolidateAfter": "600s"}, "limits": {"nvidia.com/gpu": "16"}},
    }


def test_what_is_already_ours_is_carried_along():
    """Server-side apply would delete it otherwise, and a deleted limit is no limit."""
    pool = a_node_pool(
        limits={"nvidia.com/gpu": "32"}, weight=7, field_managers={GPU_LIMIT: (FIELD_MANAGER,), WEIGHT: ("argocd",)}
    )

    manifest = a_manifest(pool, (CONSOLIDATE_AFTER, "600s"))

    assert manifest["spec"] == {"disruption": {"consolidateAfter": "600s"}, "limits": {"nvidia.com/gpu": "32"}}


def test_a_required_neighbour_stands_beside_other_disruption_fields():
    budgets = (Budget("10%"), Budget("0", ("Empty",), "0 9 * * mon-fri", "8h"))

    manifest = a_manifest(
        a_node_pool(), (BUDGETS, budgets_to_text(budgets)), (CONSOLIDATION_POLICY, "WhenEmpty"), (WEIGHT, 3)
    )

    assert manifest["spec"] == {
        "disruption": {
            "consolidateAfter": "180s",
            "consolidationPolicy": "WhenEmpty",
            "budgets": [
                {"nodes": "10%"},
                {"nodes": "0", "reasons": ["Empty"], "schedule": "0 9 * * mon-fri", "duration": "8h"},
            ],
        },
        "weight": 3,
    }


def test_a_patch_expects_the_version_that_was_seen():
    patch = pool_patch(a_node_pool(resource_version="77"), [a_change(CONSOLIDATE_AFTER, "60s")], take_over=True)

    assert (patch.expected_resource_version, patch.force) == ("77", True)


def test_a_template_cannot_be_patched():
    with pytest.raises(Refused, match="replace every node"):
        pool_patch(a_node_pool(), [a_change("spec.template.spec.expireAfter", "24h")])


def test_changes_of_other_objects_are_no_patch():
    other = Change(object="ConfigMap/x", field="a", old=None, new="b", allowed=True, reasons=())

    assert pool_patch(a_node_pool(), [other]) is None


def test_chunks_have_requests_and_limits_and_tolerate_their_pool():
    """Nothing defaults a PodTemplate: with limits alone the chunks would have no size."""
    pool = a_node_pool("gpu", taints=(Taint("nvidia.com/gpu", "NoSchedule"), Taint("team", "NoExecute", "ml")))

    template, buffer = buffer_manifests(pool, WarmBuffer(2, 8), "ops")

    spec = template["template"]["spec"]
    assert spec["containers"][0]["resources"] == {
        "requests": {"nvidia.com/gpu": "8"},
        "limits": {"nvidia.com/gpu": "8"},
    }
    assert spec["nodeSelector"] == {"karpenter.sh/nodepool": "gpu"}
    assert spec["tolerations"] == [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "team", "operator": "Equal", "value": "ml", "effect": "NoExecute"},
    ]
    assert (template["kind"], template["metadata"]["namespace"]) == ("PodTemplate", "ops")
    assert buffer["apiVersion"] == "autoscaling.x-k8s.io/v1beta1"
    assert buffer["spec"] == {"podTemplateRef": {"name": template["metadata"]["name"]}, "replicas": 2}


def test_what_is_written_is_read_back():
    pool = a_node_pool("gpu")

    assert read_buffer(buffer_manifests(pool, WarmBuffer(2, 4), "ops")[1]) == ("gpu", WarmBuffer(2, 4))
    assert read_slice_setting(slice_manifest(pool, 12.5, "ops")) == ("gpu", 12.5)


def test_yaml_is_what_kubectl_takes():
    manifests = [a_manifest(a_node_pool(), (CONSOLIDATE_AFTER, "600s"), (GPU_LIMIT, "16"))]
    manifests += buffer_manifests(a_node_pool(), WarmBuffer(1, 8), "ops")

    text = to_yaml(manifests)

    assert list(yaml.safe_load_all(text)) == manifests
    assert text.splitlines()[0] == f"# {APPLY_COMMAND}"
    assert "nvidia.com/gpu: '16'" in text, "a limit stays text"
    assert "&id" not in text, "no anchors"


def test_a_namespace_that_must_be_there_first_is_said_once_and_only_where_one_is_needed():
    own = slice_manifest(a_node_pool(), 15.0, "gpu-slice-advisor")

    assert (
        to_yaml([own, own]).count("# once, where it is not there yet: kubectl create namespace gpu-slice-advisor") == 1
    )
    assert "namespace" not in to_yaml([a_manifest(a_node_pool(), (CONSOLIDATE_AFTER, "600s"))])


def test_notes_are_comments_whatever_the_names_in_them_hold():
    manifest = a_manifest(a_node_pool(), (CONSOLIDATE_AFTER, "600s"))

    text = to_yaml([manifest], ["no NodePool a\nkind: Evil\u2028kind: Evil", "second"])

    assert text.startswith("# note: no NodePool a kind: Evil kind: Evil\n# note: second\n# kubectl")
    assert list(yaml.safe_load_all(text)) == [manifest]


def test_nothing_to_apply_is_no_yaml():
    assert to_yaml([], ["a note"]) == ""
