"""The TOML examples of the mapping page are accepted by what reads such files."""

from __future__ import annotations

import re
import tomllib

import pytest

from advisor.cluster.description import parse_description
from advisor.errors import Refused
from advisor.telemetry.mapping import COLUMN_FIELDS, mapping_from
from advisor.telemetry.prometheus.answers import BROKEN_PAIR, HISTOGRAM, NOT_A_NUMBER, OUT_OF_ORDER
from advisor.telemetry.series import read_series_mapping
from advisor.telemetry.slurm import SACCT_COMMAND
from advisor.telemetry.slurm_fields import fate_of
from tests.builders import NOON
from tests.docs.markdown_pages import DOCS, ROOT, blocks, inline_codes


def _example(title: str) -> str:
    text = (DOCS / "reference" / "mappings.md").read_text(encoding="utf-8")
    return next(block.body for block in blocks(text) if block.body.startswith(f"# {title}"))


def test_the_example_of_a_mapping_is_one():
    mapping = mapping_from(tomllib.loads(_example("mapping.toml")))
    assert mapping.columns["submit"] == "submitted"
    assert mapping.time.zone.key == "Europe/Berlin"


def test_the_example_of_a_mapping_shows_every_column_that_may_be_mapped():
    assert set(tomllib.loads(_example("mapping.toml"))["columns"]) == set(COLUMN_FIELDS)


def test_the_example_of_a_cluster_is_one():
    snapshot = parse_description(_example("cluster.toml"), NOON)
    assert snapshot.pool("training").gpu_limit == "512"
    assert snapshot.workloads[0].node == "n1"


def test_the_example_of_a_series_is_one(tmp_path):
    file = tmp_path / "series.toml"
    file.write_text(_example("series.toml"), encoding="utf-8")
    mapping = read_series_mapping(file)
    assert mapping.pool == "training"
    assert mapping.rows["pending"] == "pending_gpus"


def test_every_key_of_a_series_is_explained_and_no_other(tmp_path):
    text = (DOCS / "reference" / "mappings.md").read_text(encoding="utf-8")
    section = text.split("## Mapping of a demand series", 1)[1].split("\n## ", 1)[0]
    explained = {
        code for line in section.splitlines() if line.startswith("| `") for code in inline_codes(line.split("|")[1])
    }
    shown = set(tomllib.loads(_example("series.toml"))["series"]) | explained
    file = tmp_path / "series.toml"
    file.write_text("[series]\nnonsense = 1\n", encoding="utf-8")
    with pytest.raises(Refused) as refused:
        read_series_mapping(file)
    assert shown == set(refused.value.limit.removeprefix("[series] knows ").split(", "))


def test_the_command_line_for_slurm_is_the_one_that_refusals_give():
    text = (DOCS / "reference" / "slurm.md").read_text(encoding="utf-8")
    assert f"```bash\n{SACCT_COMMAND}\n" in text


def test_every_state_of_slurm_that_ends_a_job_is_explained():
    named = set(inline_codes((DOCS / "reference" / "slurm.md").read_text(encoding="utf-8")))
    for state in ("DEADLINE", "LAUNCH_FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT"):
        assert state in named
        fate_of(state)


def test_every_reason_for_leaving_a_row_out_is_explained():
    pages = (DOCS / "reference" / name for name in ("mappings.md", "slurm.md", "kubernetes.md", "prometheus.md"))
    named = {code for page in pages for code in inline_codes(page.read_text(encoding="utf-8"))}
    reasons = {BROKEN_PAIR, HISTOGRAM, NOT_A_NUMBER, OUT_OF_ORDER}
    for module in (ROOT / "advisor" / "telemetry").rglob("*.py"):
        reasons |= set(
            re.findall(r'(?:Unfit|tally\.add|_count)\(\s*(?:tally, )?"(\w+)"', module.read_text(encoding="utf-8"))
        )
    assert len(reasons) > 20
    assert reasons <= named
