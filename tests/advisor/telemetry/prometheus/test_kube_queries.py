"""What is asked of kube-state-metrics, and what it calls things."""

from __future__ import annotations

import pytest

from advisor.settings import TelemetrySettings
from advisor.telemetry.prometheus.kube_queries import label_column


@pytest.mark.parametrize(
    "label,column",
    [
        ("user", "label_user"),
        ("created-by", "label_created_by"),
        ("createdBy", "label_created_by"),
        ("Team", "label_team"),
        ("X509User", "label_x509_user"),
        ("slice-advisor.io/user", "label_slice_advisor_io_user"),
        ("hub.jupyter.org/username", "label_hub_jupyter_org_username"),
        ("slurmUID", "label_slurm_uid"),
    ],
)
def test_a_label_is_asked_for_as_kube_state_metrics_writes_it(label, column):
    """It replaces what is no letter, digit or underscore, parts words where a capital begins one, and lowers all."""
    assert label_column(label) == column


def test_no_two_of_the_usual_labels_of_users_are_one_column():
    usual = TelemetrySettings().user_labels
    assert len({label_column(label) for label in usual}) == len(usual)
