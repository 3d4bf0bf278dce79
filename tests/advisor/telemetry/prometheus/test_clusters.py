"""Whether a metrics server tells of one cluster or of several, by a label or without one."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from advisor.settings import PrometheusOptions
from advisor.telemetry.dcgm.scales import Pins
from advisor.telemetry.prometheus.client import PrometheusClient
from advisor.telemetry.prometheus.clusters import Clusters, clusters_seen
from advisor.telemetry.prometheus.doctor import Finding, Health, examine
from advisor.telemetry.prometheus.source import PrometheusSource
from tests.builders import NOON
from tests.metrics_server import MetricsStandIn, Told, a_job_told, a_node_told

NOW, HOUR = NOON.timestamp(), 3600.0


def made(at: float, **labels: str) -> Told:
    """The system's namespace of a cluster, made at ``at``."""
    return Told("kube_namespace_created", at, {"namespace": "kube-system", "instance": "one", **labels})


def named(told: list[Told], cluster: str) -> list[Told]:
    return [replace(each, labels={**each.labels, "cluster": cluster}) for each in told]


def a_client(series: list[Told], **more: str) -> PrometheusClient:
    options = {"url": "http://127.0.0.1:9090", "flavour": "prometheus", **more}
    served = MetricsStandIn([*a_node_told(), *a_job_told(NOW - HOUR, HOUR / 2), *series])
    return PrometheusClient(PrometheusOptions.model_validate(options), transport=served.transport())


def seen(*series: Told, **more: str) -> Clusters:
    return clusters_seen(a_client(list(series), **more), NOON - timedelta(hours=1), NOON)


def found(*series: Told, **more: str) -> Finding:
    (one,) = (each for each in examine(a_client(list(series), **more), NOON, [], 60, Pins()) if each.what == "clusters")
    return one


EU, US = (named(a_job_told(NOW - HOUR, HOUR / 2, name), name) for name in ("eu", "us"))


def test_two_clusters_behind_one_server_are_named_with_what_that_costs_and_its_remedy():
    finding = found(*EU, *US)
    assert (finding.health, finding.found) == (Health.LACKS, "2 by the label cluster: eu, us")
    assert "demand adds up" in finding.costs
    assert "--cluster" in finding.remedy
    assert "storage.home" in finding.remedy


def test_once_one_is_asked_for_all_is_well():
    assert found(*EU, *US, cluster="eu") == Finding(what="clusters", health=Health.WELL, found="one, eu")


def test_the_label_may_be_called_otherwise():
    series = [replace(each, labels={**each.labels, "region": each.labels["cluster"]}) for each in (*EU, *US)]
    assert seen(*series, cluster_label="region").names == ("eu", "us")


@pytest.mark.parametrize("called", ["namespace", "exported_namespace"])
def test_without_a_label_two_clusters_are_told_apart_by_when_they_were_made(called):
    # Renamed, the namespace is that of kube-state-metrics, which says nothing: here it runs in the system's.
    mine = {called: "kube-system", "namespace": "kube-system"}
    others = [made(at, **{**mine, called: "ml"}) for at in (7.0, 8.0, 9.0)] if called != "namespace" else []
    clusters = seen(made(1e9, **mine), made(2e9, **mine), *others)
    assert (clusters.names, clusters.number, clusters.mixed) == ((), 2, True)
    assert "external label" in clusters.remedy


def test_several_called_alike_are_seen_too():
    clusters = seen(*EU, made(1e9, cluster="eu"), made(2e9, cluster="eu"), cluster="eu")
    assert str(clusters) == "2, and by the label cluster all called eu"
    assert "external label" in clusters.remedy


def test_a_pair_of_kube_state_metrics_is_one_cluster():
    clusters = seen(made(1e9), made(1e9, instance="two"))
    assert (clusters.number, clusters.mixed, clusters.costs, clusters.remedy) == (1, False, "", "")


def test_where_nothing_tells_the_doctor_says_so():
    finding = found()
    assert (finding.health, finding.costs) == (Health.NOTE, "")
    assert "kube_namespace_created" in finding.found


def test_whoever_reads_several_as_one_is_told_with_the_jobs():
    def notes(*series: Told, **more: str) -> list[str]:
        client = a_client(list(series), **more)
        return [
            note
            for note in PrometheusSource(client, client.options, ()).read(None, NOON).notes
            if "clusters read as one" in note
        ]

    (note,) = notes(*EU, *US)
    assert "eu, us" in note
    assert "--cluster" in note
    assert notes(*EU, *US, cluster="eu") == []
    assert notes() == []
