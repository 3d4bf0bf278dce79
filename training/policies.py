"""The policies of a backtest by name: what each is made of, and the cluster it runs on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from advisor.domain.jobs import Job
from advisor.domain.units import finite, positive
from advisor.errors import Refused
from advisor.simulator.foresight import Ages, Foresight
from advisor.simulator.policies.backfilling import Backfilling, ShortestFirst
from advisor.simulator.policies.fifo import Karpenter, Traditional
from advisor.simulator.policies.protocol import Policy
from advisor.simulator.policies.recipe import Recipe, RecipeTerms
from advisor.simulator.policies.trailing import TrailingMaximum
from advisor.simulator.tasks import SimulatedJob
from advisor.simulator.terms import ClusterTerms, StartParts

__all__ = [
    "ADVISOR",
    "ADVISOR_CHECKPOINTING",
    "ALWAYS",
    "EVERYTHING_MOVES",
    "KEEP_ALIVES",
    "KEEP_ALIVE_BEST",
    "MORE",
    "Contest",
    "ContestTerms",
    "Entrant",
    "entrant",
    "entrants",
    "static_nodes",
]

ADVISOR = "advisor"
ADVISOR_CHECKPOINTING = "advisor_checkpointing"
KEEP_ALIVE_BEST = "keep_alive_best"

ALWAYS = (
    "traditional",
    "karpenter",
    KEEP_ALIVE_BEST,
    "static_p95",
    ADVISOR,
    ADVISOR_CHECKPOINTING,
    "advisor_median_of_5",
    "clairvoyant",
)
"""The policies that every backtest has."""

MORE = (
    "fifo_easy",
    "static_p100",
    "trailing_max",
    "shortest_first",
    "least_attained_service",
    "advisor_unpredicted",
    "advisor_marked_median_of_5",
    "advisor_without_warm",
    "advisor_without_moves",
    "advisor_without_leases",
)
"""Those to be had on top."""

EVERYTHING_MOVES = frozenset(
    {
        ADVISOR_CHECKPOINTING,
        "advisor_median_of_5",
        "clairvoyant",
        "least_attained_service",
        "advisor_unpredicted",
        "advisor_without_warm",
        "advisor_without_moves",
        "advisor_without_leases",
    }
)
"""Those that may stop and move every job, whatever is marked."""

KEEP_ALIVES = (30.0, 60.0, 180.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0)
"""The settings over which ``consolidateAfter`` is swept, in seconds."""

_KEEP_ALIVE = "keep_alive_"
_HARDLY_ANY = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ContestTerms:
    """The cluster that all policies run on, and what may be done to work.

    ``checkpointable`` is the share of jobs marked so; ``quota_nodes`` None leaves the cluster elastic.
    ``seeds`` runs are made, the first with submissions as they were, each other with theirs shaken by up to a
    minute, jobs of one second together.
    """

    node_gpus: int = 8
    start_latency_seconds: float = 300.0
    switch_seconds: float = 60.0
    checkpointable: float = 0.0
    quota_nodes: int | None = None
    seeds: int = 1

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            Refused: naming the field, its value and what it may be.
        """
        positive(self.node_gpus, "node_gpus", "GPUs")
        for name in ("start_latency_seconds", "switch_seconds"):
            if finite(getattr(self, name), name) < 0:
                raise Refused(name, getattr(self, name), "it must be 0 or more", "Use 0 for none.")
        if not 0.0 <= self.checkpointable <= 1.0:
            raise Refused("checkpointable", self.checkpointable, "a share lies in [0, 1]", "Use 1 for all jobs.")
        if self.seeds < 1:
            raise Refused("seeds", self.seeds, "at least one run is needed", "Use 1.")

    @property
    def cluster(self) -> ClusterTerms:
        """The cluster with Karpenter's usual keep-alive."""
        return ClusterTerms(
            node_gpus=self.node_gpus,
            start=StartParts.constant(self.start_latency_seconds),
            limit_nodes=self.quota_nodes,
            switch_seconds=self.switch_seconds,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """Everything that all runs share: the work, what each kind of policy knows, and what the past needed.

    ``jobs`` carry their marks. ``foresights`` are ``model``, ``median_of_5`` and ``truth``, by place in ``jobs``;
    ``static_nodes`` maps a static policy to its nodes.
    """

    terms: ContestTerms
    jobs: tuple[SimulatedJob, ...]
    foresights: Mapping[str, Foresight]
    static_nodes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Entrant:
    """A policy ready to run once, on its cluster; ``everything`` lets it stop and move all jobs."""

    policy: Policy
    cluster: ClusterTerms
    everything: bool
    setting: Mapping[str, float] = field(default_factory=dict)


def entrants(names: Sequence[str]) -> list[str]:
    """The runs that the policies ``names`` take: the swept one takes a run for each setting.

    Raises:
        Refused: a name that is not known.
    """
    for name in names:
        if name not in (*ALWAYS, *MORE):
            raise Refused("policy", name, f"known are {', '.join(MORE)} beside the usual ones", "Name one of them.")
    swept = [f"{_KEEP_ALIVE}{seconds:g}" for seconds in KEEP_ALIVES]
    wanted = dict.fromkeys((*ALWAYS, *names))
    return [run for name in wanted for run in (swept if name == KEEP_ALIVE_BEST else [name])]


def entrant(name: str, contest: Contest) -> Entrant:
    """The policy of that run, fresh."""
    cluster = contest.terms.cluster
    everything = name in EVERYTHING_MOVES
    if name.startswith("static_"):
        nodes = contest.static_nodes[name]
        return Entrant(Karpenter(), replace(cluster, static_nodes=nodes, limit_nodes=nodes), False, {"nodes": nodes})
    if name in _SIMPLE:
        return Entrant(_SIMPLE[name](), cluster, everything=False)
    if name.startswith(_KEEP_ALIVE):
        seconds = float(name.removeprefix(_KEEP_ALIVE))
        swept = replace(cluster, keep_alive_seconds=seconds)
        return Entrant(Karpenter(), swept, False, {"keep_alive_seconds": seconds})
    foresight = contest.foresights[_FORESIGHTS.get(name, "model")]
    if name in _FORESEEING:
        return Entrant(_FORESEEING[name](foresight), cluster, everything=False)
    known: Foresight = Ages() if name in _UNPREDICTED else foresight
    return Entrant(Recipe(known, _recipe(name, contest.terms, everything)), cluster, everything)


_SIMPLE: Mapping[str, Callable[[], Policy]] = MappingProxyType(
    {"traditional": Traditional, "karpenter": Karpenter, "trailing_max": TrailingMaximum}
)
_FORESEEING: Mapping[str, Callable[[Foresight], Policy]] = MappingProxyType(
    {"fifo_easy": Backfilling, "shortest_first": ShortestFirst}
)
_FORESIGHTS = MappingProxyType(
    {"advisor_median_of_5": "median_of_5", "advisor_marked_median_of_5": "median_of_5", "clairvoyant": "truth"}
)
_UNPREDICTED = ("least_attained_service", "advisor_unpredicted")


def _recipe(name: str, terms: ContestTerms, everything: bool) -> RecipeTerms:
    """The recipe as it goes with the cluster: leases only pay where there is a quota, and only if work can stop."""
    movable = 1.0 if everything else terms.checkpointable
    quota = terms.quota_nodes is not None
    attained = name == "least_attained_service"
    leases = quota and movable > 0 and name != "advisor_without_leases"
    reserves = quota and (movable < _HARDLY_ANY or not leases)
    return RecipeTerms(
        warm_level=0.0 if attained or name == "advisor_without_warm" else (0.90 if quota else 0.95),
        moves=movable > 0 and not attained and name != "advisor_without_moves",
        leases=leases,
        reserves=reserves,
        patience_days=3.0 if reserves or not leases else 5.0,
    )


def static_nodes(before: Sequence[Job], split: float, terms: ContestTerms, largest: float) -> dict[str, int]:
    """Nodes that hold the 95 % quantile and the highest of the GPUs in use before ``split`` (Unix seconds).

    Weighted by time; at least what the ``largest`` job needs, at most the quota.
    """
    changes = [
        (moment.timestamp(), sign * job.gpus)
        for job in before
        if job.start is not None and job.gone_at is not None
        for moment, sign in ((job.start, 1.0), (job.gone_at, -1.0))
        if moment.timestamp() < split
    ]
    least = terms.cluster.nodes_for(largest)
    if not changes:
        return dict.fromkeys(("static_p95", "static_p100"), least)
    times, steps = np.array(sorted(changes)).T
    in_use = np.cumsum(steps)
    spans = np.diff(np.append(times, split))
    order = np.argsort(in_use, kind="stable")
    shares = np.cumsum(spans[order]) / spans.sum()
    found = {
        "static_p95": float(in_use[order][min(int(np.searchsorted(shares, 0.95)), len(order) - 1)]),
        "static_p100": float(in_use.max()),
    }
    most = math.inf if terms.quota_nodes is None else terms.quota_nodes
    return {name: int(min(max(math.ceil(gpus / terms.node_gpus), least), most)) for name, gpus in found.items()}
