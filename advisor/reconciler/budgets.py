"""Disruption budgets: each entry sound, and the list carried whole.

The list is atomic: whoever writes one entry writes all of them. An entry left out, or a list whose
entries all name reasons, leaves the remaining reasons without any bound.
"""

from __future__ import annotations

import json
import re
from typing import Any

from advisor.cluster.fields import BUDGETS, DEFAULT_BUDGETS, check_field
from advisor.domain.nodepools import Budget
from advisor.errors import Refused
from advisor.reconciler.cron import check_schedule

__all__ = ["budget_documents", "budgets_from_text", "budgets_to_text", "check_budget", "check_carried_whole"]

_PERCENT = re.compile(r"([0-9]+)%")
_DURATION = re.compile(r"(?:([0-9]+)d)?(?:([0-9]+)h)?(?:([0-9]+)m)?(?:[0-9]+s)?")


def check_budget(budget: Budget, where: str = "budgets") -> None:
    """Nothing where both the CRD and Karpenter itself can read the entry.

    Raises:
        Refused: one of them cannot; the remedy offers what was probably meant.
    """
    percent = _PERCENT.fullmatch(budget.nodes)
    if percent and int(percent.group(1)) > 100:
        raise Refused(f"{where}.nodes", budget.nodes, "a share of the nodes is 0% to 100%", "Write 100%.")
    if budget.duration is not None:
        _check_duration(budget.duration, f"{where}.duration")
    check_field(BUDGETS, (budget,))
    if budget.schedule is not None:
        check_schedule(budget.schedule, f"{where}.schedule")


def check_carried_whole(before: tuple[Budget, ...] | None, after: tuple[Budget, ...]) -> None:
    """Nothing where every entry in force before is still there (the default 10 % where none was written).

    Karpenter takes the least of all entries that apply, so entries may be added freely.

    Raises:
        Refused: an entry is missing, which would widen what may be disrupted.
    """
    for entry in DEFAULT_BUDGETS if before is None else before:
        if entry not in after:
            raise Refused(
                "budgets",
                budgets_to_text(after),
                f"the entry {budgets_to_text((entry,))} in force would be dropped, and with it its bound",
                "Write the whole list, the old entries first.",
            )


def budget_documents(budgets: tuple[Budget, ...]) -> list[dict[str, Any]]:
    """The list as it stands in a manifest; absent fields stay absent."""
    documents = []
    for budget in budgets:
        document: dict[str, Any] = {"nodes": budget.nodes}
        if budget.reasons is not None:
            document["reasons"] = list(budget.reasons)
        if budget.schedule is not None:
            document["schedule"] = budget.schedule
        if budget.duration is not None:
            document["duration"] = budget.duration
        documents.append(document)
    return documents


def budgets_to_text(budgets: tuple[Budget, ...]) -> str:
    """The list as one line of JSON, as a change carries it."""
    return json.dumps(budget_documents(budgets))


def budgets_from_text(text: str) -> tuple[Budget, ...]:
    """The list a change carries.

    Raises:
        Refused: it is no JSON list of budgets.
    """
    try:
        entries = json.loads(text)
        return tuple(
            Budget(
                entry["nodes"],
                tuple(entry["reasons"]) if "reasons" in entry else None,
                entry.get("schedule"),
                entry.get("duration"),
            )
            for entry in entries
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise Refused("budgets", text, "it is no JSON list of budgets", "Write the whole list.") from error


def _check_duration(duration: str, where: str) -> None:
    match = _DURATION.fullmatch(duration)
    if match and match.group(1):
        days, hours, minutes = (int(part or 0) for part in match.groups())
        meant = f"{days * 24 + hours}h" + (f"{minutes}m" if minutes else "")
        raise Refused(where, duration, "a budget lasts hours and minutes, days are not understood", f"Write {meant}.")
