"""The kinds of objects that tell of jobs."""

from __future__ import annotations

from advisor.cluster.objects import ObjectKind

__all__ = ["CLAIMS", "CREATORS", "JOBS", "NODES", "PODS", "WORKLOADS"]

PODS = ObjectKind("pods", "Pod")
NODES = ObjectKind("nodes", "Node")
JOBS = ObjectKind("jobs", "Job", "batch")
CLAIMS = ObjectKind("nodeclaims", "NodeClaim", "karpenter.sh")
WORKLOADS = ObjectKind("workloads", "Workload", "kueue.x-k8s.io", ("v1beta2", "v1beta1"))
"""Kueue's own view of a job that it queues."""

_KUBEFLOW = "kubeflow.org"
_RAY = "ray.io"

CREATORS = (
    JOBS,
    ObjectKind("jobsets", "JobSet", "jobset.x-k8s.io", ("v1alpha2",)),
    ObjectKind("trainjobs", "TrainJob", "trainer.kubeflow.org", ("v1alpha1",)),
    ObjectKind("pytorchjobs", "PyTorchJob", _KUBEFLOW),
    ObjectKind("tfjobs", "TFJob", _KUBEFLOW),
    ObjectKind("mpijobs", "MPIJob", _KUBEFLOW, ("v2beta1", "v1")),
    ObjectKind("xgboostjobs", "XGBoostJob", _KUBEFLOW),
    ObjectKind("paddlejobs", "PaddleJob", _KUBEFLOW),
    ObjectKind("jaxjobs", "JAXJob", _KUBEFLOW),
    ObjectKind("rayjobs", "RayJob", _RAY),
    ObjectKind("rayclusters", "RayCluster", _RAY),
    ObjectKind("sparkapplications", "SparkApplication", "sparkoperator.k8s.io", ("v1beta2",)),
)
"""What makes pods that are one piece of work. All but Jobs exist only where their operator is installed."""
