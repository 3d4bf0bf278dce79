"""The fields of a NodePool that may ever be written, and what the API server accepts in each.

None of them lies under ``spec.template``: those would make Karpenter replace every node of the pool.
The shapes are those of the karpenter.sh/v1 CRD. It accepts schedules that Karpenter itself cannot
parse; that is for the reconciler to refuse before anything is written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TypeAlias

from advisor.cluster.quantities import parse_gpus
from advisor.domain.nodepools import GPU_RESOURCE, Budget, NodePool
from advisor.errors import Refused

__all__ = [
    "BUDGETS",
    "CONSOLIDATE_AFTER",
    "CONSOLIDATION_POLICY",
    "DEFAULT_BUDGETS",
    "DEFAULT_CONSOLIDATE_AFTER",
    "DEFAULT_POLICY",
    "DISRUPTION_FIELDS",
    "GPU_LIMIT",
    "REPLICAS",
    "WEIGHT",
    "WRITABLE_FIELDS",
    "FieldValue",
    "check_field",
    "consolidate_after_seconds",
    "field_of",
    "shown_consolidate_after",
]

FieldValue: TypeAlias = str | int | tuple[Budget, ...]
"""What a field may hold: text, a count, or a whole list of budgets."""

CONSOLIDATE_AFTER = "spec.disruption.consolidateAfter"
CONSOLIDATION_POLICY = "spec.disruption.consolidationPolicy"
BUDGETS = "spec.disruption.budgets"
GPU_LIMIT = f'spec.limits["{GPU_RESOURCE}"]'
WEIGHT = "spec.weight"
REPLICAS = "spec.replicas"

DISRUPTION_FIELDS = (CONSOLIDATE_AFTER, CONSOLIDATION_POLICY, BUDGETS)
WRITABLE_FIELDS = (*DISRUPTION_FIELDS, GPU_LIMIT, WEIGHT, REPLICAS)

DEFAULT_CONSOLIDATE_AFTER = "0s"
DEFAULT_POLICY = "WhenEmptyOrUnderutilized"
DEFAULT_BUDGETS = (Budget("10%"),)
"""What the API server puts where a key is absent; an *empty* list of budgets means no bound at all."""

_POLICIES = ("WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced")
_REASONS = ("Underutilized", "Empty", "Drifted")
_MOST_BUDGETS = 50
_CONSOLIDATE_AFTER = re.compile(r"(?:[0-9]+[smh])+|Never")
_PART = re.compile(r"([0-9]+)([smh])")
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600}
# Karpenter reads it as a Go duration: nanoseconds in 63 bits.
_MOST_SECONDS = 2**63 / 1e9
_NODES = re.compile(r"(?:100|[0-9]{1,2})%|[0-9]+")
_DURATION = re.compile(r"(?:[0-9]+[hm]|[0-9]+h[0-9]+m)(?:0s)?")
_MACRO = re.compile(r"@(?:annually|yearly|monthly|weekly|daily|midnight|hourly)")
_FIVE_PARTS = re.compile(r".+\s.+\s.+\s.+\s.+")


def consolidate_after_seconds(text: str, field: str = CONSOLIDATE_AFTER) -> float:
    """Seconds in a ``consolidateAfter``; infinite for ``Never``.

    Raises:
        Refused: not whole numbers of s, m and h, as the CRD demands.
    """
    if _CONSOLIDATE_AFTER.fullmatch(text) is None:
        raise Refused(field, text, "it is whole numbers of s, m or h, or Never", "Write 90s, 5m or 1h30m.")
    if text == "Never":
        return math.inf
    return float(sum(float(number) * _UNIT_SECONDS[unit] for number, unit in _PART.findall(text)))


def shown_consolidate_after(seconds: float) -> str:
    """Whole seconds as the field is written; ``Never`` where infinite."""
    return "Never" if math.isinf(seconds) else f"{round(seconds)}s"


def field_of(pool: NodePool, field: str) -> FieldValue | None:
    """What a pool holds in one of the writable fields, None where the key is absent.

    Raises:
        Refused: not a writable field.
    """
    read: dict[str, FieldValue | None] = {
        CONSOLIDATE_AFTER: pool.consolidate_after,
        CONSOLIDATION_POLICY: pool.consolidation_policy,
        BUDGETS: pool.budgets,
        GPU_LIMIT: pool.gpu_limit,
        WEIGHT: pool.weight,
        REPLICAS: pool.replicas,
    }
    if field not in read:
        raise _not_writable(field)
    return read[field]


def check_field(field: str, value: FieldValue) -> None:
    """Nothing where the API server's schema accepts ``value`` in ``field``.

    Raises:
        Refused: the field may not be written at all, or its shape is wrong.
    """
    check = _CHECKS.get(field)
    if check is None:
        raise _not_writable(field)
    check(field, value)


def _not_writable(field: str) -> Refused:
    if field.startswith("spec.template"):
        return Refused(
            field,
            "a change",
            "anything under spec.template makes Karpenter replace every node of the pool",
            "Change it yourself, at a time of your choosing.",
        )
    return Refused("field", field, f"only {', '.join(WRITABLE_FIELDS)} may be written", "Leave it to its owner.")


def _check_consolidate_after(field: str, value: FieldValue) -> None:
    if not isinstance(value, str):
        raise Refused(field, value, "it is text such as 180s", "Write it with its unit.")
    if value != "Never" and consolidate_after_seconds(value, field) >= _MOST_SECONDS:
        raise Refused(field, value, "it is below 292 years, the longest duration Karpenter can read", "Write Never.")


def _check_policy(field: str, value: FieldValue) -> None:
    if value not in _POLICIES:
        raise Refused(field, value, f"it is one of {', '.join(_POLICIES)}", "Use one of them.")


def _check_budgets(field: str, value: FieldValue) -> None:
    if not isinstance(value, tuple) or len(value) > _MOST_BUDGETS:
        raise Refused(field, value, f"it is a list of at most {_MOST_BUDGETS} budgets", "Write the whole list.")
    for budget in value:
        _check_budget(field, budget)


def _check_budget(field: str, budget: Budget) -> None:
    if _NODES.fullmatch(budget.nodes) is None:
        raise Refused(f"{field}.nodes", budget.nodes, "it is a count or 0% to 100%", "Write 10% or 2.")
    unknown = [reason for reason in budget.reasons or () if reason not in _REASONS]
    if unknown:
        raise Refused(f"{field}.reasons", unknown[0], f"reasons are {', '.join(_REASONS)}", "Use these words.")
    if (budget.schedule is None) != (budget.duration is None):
        raise Refused(field, budget, "'schedule' must be set with 'duration'", "Give both or neither.")
    if budget.duration is not None and _DURATION.fullmatch(budget.duration) is None:
        raise Refused(f"{field}.duration", budget.duration, "it is whole hours and minutes", "Write 24h or 90m.")
    # The CRD's pattern anchors neither the macro's end nor the five parts; it is kept as loose as it is.
    if budget.schedule is not None and not (_MACRO.match(budget.schedule) or _FIVE_PARTS.search(budget.schedule)):
        raise Refused(f"{field}.schedule", budget.schedule, "it has five parts or is a macro", "Write 0 9 * * mon-fri.")


def _check_gpu_limit(field: str, value: FieldValue) -> None:
    # Text always, since "32" and 32 are the same limit and yet a conflict between two managers.
    if not isinstance(value, str):
        raise Refused(field, value, 'a limit is text such as "16"', "Write it as text.")
    parse_gpus(value, field)


def _check_weight(field: str, value: FieldValue) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 100:
        raise Refused(field, value, "it is 1 to 100", "Leave it out for 0.")


def _check_replicas(field: str, value: FieldValue) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise Refused(field, value, "it is 0 or more", "Give a count of nodes.")


_CHECKS: dict[str, Callable[[str, FieldValue], None]] = {
    CONSOLIDATE_AFTER: _check_consolidate_after,
    CONSOLIDATION_POLICY: _check_policy,
    BUDGETS: _check_budgets,
    GPU_LIMIT: _check_gpu_limit,
    WEIGHT: _check_weight,
    REPLICAS: _check_replicas,
}
