"""``gsa ingest prometheus`` and ``gsa doctor prometheus``: what they print, and how they end."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from advisor.history.store import HistoryStore
from advisor.settings import load_settings
from serving.cli import root
from tests.docs.json_shapes import differences, documented
from tests.metrics_server import MetricsStandIn, Told, a_job_told, a_node_told, serving

HOUR = 3600.0
SECRET = "n0body-may-see-th1s"


def a_cluster(ago: float = 5 * HOUR) -> list[Told]:
    """A job that began so many seconds ago and ran for two hours."""
    return [*a_job_told(float(int(time.time() - ago)), 2 * HOUR), *a_node_told()]


@pytest.fixture
def server() -> Iterator[MetricsStandIn]:
    with serving(MetricsStandIn()) as stand_in:
        yield stand_in


@pytest.fixture
def gsa(tmp_path, monkeypatch, capsys) -> Callable[..., tuple[int, str, str]]:
    """Runs a whole command line; gives its exit code, standard output and standard error."""
    monkeypatch.setenv("GSA_STORAGE__HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GSA_PROMETHEUS__RETRIES", "0")

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["gsa", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            root.main()
        shown = capsys.readouterr()
        return int(ended.value.code or 0), shown.out, shown.err

    return run


def test_a_job_comes_in_with_its_user_pool_and_usage(gsa, server, monkeypatch):
    server.series = a_cluster()
    monkeypatch.setenv("GSA_TELEMETRY__USER_LABELS", '["owner", "createdBy"]')
    code, out, _ = gsa("ingest", "prometheus", "--url", server.url, "--days", 1, "--output", "json")
    document = json.loads(out)
    assert (code, document["source"], document["added"], document["rejections"]) == (0, "prometheus", 1, [])
    assert differences(documented("gsa ingest trace"), document) == []
    _, again, _ = gsa("ingest", "prometheus", "--url", server.url, "--days", 1, "--output", "json")
    assert (json.loads(again)["added"], json.loads(again)["unchanged"]) == (0, 1)
    with HistoryStore.open(load_settings().storage.history) as store:
        (job,) = store.jobs(datetime.now(UTC))
    assert (job.user, job.pool, job.created_by, job.gpus, job.outcome) == ("ada", "gpu", "Job/train", 1, "completed")
    assert job.duration_seconds == 2 * HOUR - 90
    assert job.usage is not None
    assert (round(job.usage.compute_mean or 0, 6), job.usage.memory_peak_bytes) == (0.62, 2048 * 2**20)


def test_what_comes_in_is_told_to_people_and_the_cluster_is_part_of_the_name(gsa, server):
    at = time.time() - 5 * HOUR
    told = {"eu": a_cluster(), "us": [*a_job_told(at, HOUR, "other"), *a_job_told(at, HOUR, "more"), *a_node_told()]}
    server.series = [
        replace(each, labels={**each.labels, "cluster": cluster})
        for cluster, each_of in told.items()
        for each in each_of
    ]
    code, out, err = gsa("ingest", "prometheus", "--url", server.url, "--days", 1, "--cluster", "eu")
    assert (code, "source prometheus/eu" in out) == (0, True)
    assert "ingest: storing jobs, 1 in all" in err.splitlines()


def test_the_doctor_finds_what_is_there_and_names_the_cost_of_what_is_not(gsa, server):
    server.series = [each for each in a_cluster() if each.metric != "kube_pod_completion_time"]
    code, out, _ = gsa("doctor", "prometheus", "--url", server.url, "--output", "json")
    document = json.loads(out)
    found = {each["what"]: each for each in document["findings"]}
    assert code == 0
    assert differences(documented("gsa doctor prometheus"), document) == []
    assert found["server"]["found"] == "prometheus 2.53.0"
    assert (found["kube_pod_created"]["health"], found["kube_pod_completion_time"]["health"]) == ("ok", "missing")
    assert found["kube_pod_completion_time"]["costs"] == "ends are those of the last scrape, not of the container"
    assert found["labels of users"]["found"] == "created-by"
    assert found["utilisation"]["found"] == "DCGM_FI_DEV_GPU_UTIL in percent (the name of the driver label)"
    assert found["pods on GPUs"]["found"] == "1 GPU, 1 with pods"


def test_a_unit_pinned_in_the_settings_is_the_one_believed(gsa, server, monkeypatch):
    server.series = a_cluster()
    monkeypatch.setenv("GSA_DCGM__MEMORY", "bytes")
    _, out, _ = gsa("doctor", "prometheus", "--url", server.url, "--output", "json")
    found = {each["what"]: each["found"] for each in json.loads(out)["findings"]}
    assert found["memory_used"] == "DCGM_FI_DEV_FB_USED in bytes (pinned in the settings)"


def test_a_pinned_unit_is_believed_when_jobs_are_read_too(gsa, server, monkeypatch):
    server.series = a_cluster()
    monkeypatch.setenv("GSA_DCGM__UTILISATION", "ratio")
    _, out, _ = gsa("ingest", "prometheus", "--url", server.url, "--days", 1, "--output", "json")
    (rejection,) = json.loads(out)["rejections"]
    assert (rejection["reason"], rejection["count"] > 100) == ("out_of_range", True)


def test_people_are_told_each_remedy_once_with_all_that_it_mends(gsa, server):
    server.series = [each for each in a_cluster() if not each.metric.startswith("DCGM")]
    code, out, _ = gsa("doctor", "prometheus", "--url", server.url)
    # Lines are as wide as the terminal, and break where they must.
    told = " ".join(out.split())
    assert (code, told.count("Scrape kube-state-metrics 2.x")) == (0, 1)
    assert "Install dcgm-exporter" in told


def test_without_kube_state_metrics_the_doctor_ends_with_5_and_ingest_with_3(gsa, server):
    server.series = [each for each in a_cluster() if each.metric.startswith("DCGM")]
    code, out, _ = gsa("doctor", "prometheus", "--url", server.url)
    assert code == root.ExitCode.GATE
    assert "Install kube-state-metrics" in " ".join(out.split())
    code, out, err = gsa("ingest", "prometheus", "--url", server.url)
    assert (code, out) == (root.ExitCode.REFUSED, "")
    assert "Run gsa doctor prometheus" in err


COMMANDS = pytest.mark.parametrize("command", ["ingest", "doctor"])


@COMMANDS
def test_an_address_is_needed(gsa, command):
    code, out, err = gsa(command, "prometheus")
    assert (code, out) == (root.ExitCode.REFUSED, "")
    assert err.startswith("--url: nothing was given")
    assert "prometheus.url" in err


@COMMANDS
def test_an_address_without_its_scheme_is_shown_and_said_to_lack_it(gsa, command):
    code, _, err = gsa(command, "prometheus", "--url", "127.0.0.1:19090")
    assert code == root.ExitCode.REFUSED
    assert err.startswith("--url: '127.0.0.1:19090' is refused; http:// or https:// is missing")


@COMMANDS
def test_where_nobody_listens_the_address_is_named_with_what_to_check(gsa, server, command):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{free.getsockname()[1]}"
    code, _, err = gsa(command, "prometheus", "--url", nowhere)
    assert code == root.ExitCode.UNAVAILABLE
    assert f"{nowhere} could not answer" in err
    assert "refused. Check the address, that the server runs" in err


def test_a_cluster_that_is_not_there_is_blamed_and_those_that_are_are_named(gsa, server):
    server.series = [replace(each, labels={**each.labels, "cluster": "eu"}) for each in a_cluster()]
    code, _, err = gsa("ingest", "prometheus", "--url", server.url, "--days", 1, "--cluster", "nope")
    assert code == root.ExitCode.REFUSED
    assert "cluster: 'nope' is refused" in err
    assert "Use one that there is: eu." in err
    code, out, _ = gsa("doctor", "prometheus", "--url", server.url, "--cluster", "nope", "--output", "json")
    found = json.loads(out)["findings"]
    assert code == root.ExitCode.GATE
    assert [(each["what"], each["health"]) for each in found] == [("server", "ok"), ("cluster", "fatal")]
    assert found[1]["remedy"] == "Use one that there is: eu."


def test_days_are_counted_as_people_do(gsa, server):
    _, _, err = gsa("ingest", "prometheus", "--url", server.url, "--days", 1)
    assert "in the last 1 day." in err


def test_the_doctor_s_table_keeps_names_whole_and_its_prose_left_in_80_columns(gsa, server, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lacking = ("DCGM_FI_DEV_FB", "kube_node_labels")
    server.series = [each for each in a_cluster() if not each.metric.startswith(lacking)]
    _, out, _ = gsa("doctor", "prometheus", "--url", server.url)
    lines = out.splitlines()
    # An option to be copied is one word, however long.
    assert max(len(line) for line in lines if "allowlist=" not in line) <= 80
    assert any(line.startswith("│ missing │ memory_used: no DCGM_FI_DEV_FB_USED in the last hour ") for line in lines)
    assert any("│   the memory of jobs is not known" in line for line in lines)
    assert "kube_pod_container_resource_requests: there" in out
    assert "- memory_used: Add DCGM_FI_DEV_FB_USED to the metrics file of dcgm-exporter." in out
    assert "nodes=[karpenter.sh/nodepool,nvidia.com/gpu.product,...]" in out.replace("\n  ", " ")


@COMMANDS
def test_a_server_that_is_out_ends_with_4(gsa, server, command):
    server.status = 503
    code, out, err = gsa(command, "prometheus", "--url", server.url)
    assert (code, out) == (root.ExitCode.UNAVAILABLE, "")
    assert "could not answer" in err


@COMMANDS
@pytest.mark.parametrize("status", [401, 503])
def test_no_secret_is_shown_though_the_server_repeats_it(gsa, server, command, status, monkeypatch):
    monkeypatch.setenv("GSA_PROMETHEUS__BEARER_TOKEN", SECRET)
    monkeypatch.setenv("GSA_PROMETHEUS__HEADERS", json.dumps({"X-Scope-OrgID": f"t-{SECRET}"}))
    server.status, server.body = status, json.dumps({"status": "error", "error": f"bad token {SECRET}"}).encode()
    code, out, err = gsa(command, "prometheus", "--url", server.url)
    assert code == (root.ExitCode.REFUSED if status == 401 else root.ExitCode.UNAVAILABLE)
    assert server.headers["Authorization"] == f"Bearer {SECRET}"
    assert SECRET not in out + err
    assert "bad token" in err


@COMMANDS
def test_a_password_in_the_address_is_refused_and_not_repeated(gsa, command):
    code, out, err = gsa(command, "prometheus", "--url", f"http://ada:{SECRET}@127.0.0.1:9")
    assert code == root.ExitCode.REFUSED
    assert SECRET not in out + err


def test_a_version_that_is_none_is_refused_before_anything_is_asked(gsa, server, monkeypatch):
    monkeypatch.setenv("GSA_DCGM__EXPORTER_VERSION", "newest")
    code, _, err = gsa("ingest", "prometheus", "--url", server.url)
    assert (code, server.headers) == (root.ExitCode.REFUSED, {})
    assert "exporter_version" in err
