"""The role in the guide lets every kind be read that is read, and nothing be written."""

from __future__ import annotations

import yaml

from advisor.domain.start_latency import StartPart
from advisor.telemetry.kubernetes.kinds import CLAIMS, CREATORS, NODES, PODS, WORKLOADS
from tests.docs.markdown_pages import DOCS, blocks, inline_codes

PAGE = (DOCS / "reference" / "kubernetes.md").read_text(encoding="utf-8")


def test_the_role_covers_every_kind_and_only_reads():
    (role,) = (yaml.safe_load(block.body) for block in blocks(PAGE) if block.info == "yaml")
    granted = {(group, plural) for rule in role["rules"] for group in rule["apiGroups"] for plural in rule["resources"]}
    assert {(kind.group, kind.plural) for kind in (PODS, NODES, CLAIMS, WORKLOADS, *CREATORS)} <= granted
    assert all(rule["verbs"] == ["get", "list", "watch"] for rule in role["rules"])


def test_every_part_of_a_start_is_explained():
    assert {str(part) for part in StartPart} <= set(inline_codes(PAGE))
