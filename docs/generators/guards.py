"""The guards page: every rule that may refuse a change, with its sentence, and the limits it holds changes to."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from advisor.cluster.fields import WRITABLE_FIELDS
from advisor.reconciler.guards import SAFETY_GUARDS, WRITE_GUARDS, Guard, GuardRules
from docs.generators.markdown import code, document, plain, table

__all__ = ["guards_page"]

_INTRODUCTION = """# Guards

Rules that allow a change or say why not. All of them are asked, so that all reasons are seen at once.
[How a change is judged](../explanation/changes.md) tells the story around them."""

_SAFETY = """## Guards of safety

They decide whether a change is fit to be made by anybody, and so whether it is shown as allowed and stands in the
printed patch."""

_WRITING = """## Guards of writing

They decide whether this program may make the change itself. A change that only they refuse is a recommendation."""

_FIELDS = """## Fields of a NodePool that may ever be written

No other field can be named in a patch at all; anything under `spec.template` would make Karpenter replace nodes."""


def guards_page() -> str:
    """The page, in the order in which guards are asked."""
    rules = [(code(field.name), code(str(field.default))) for field in dataclasses.fields(GuardRules)]
    return document(
        _INTRODUCTION,
        _SAFETY,
        _table(SAFETY_GUARDS),
        _WRITING,
        _table(WRITE_GUARDS),
        "## Limits",
        plain(GuardRules.__doc__),
        table(("rule", "default"), rules),
        _FIELDS,
        "\n".join(f"- {code(field)}" for field in WRITABLE_FIELDS),
    )


def _table(guards: Iterable[Guard]) -> str:
    # A guard is typed as anything that can be called; each is a function with a name and one sentence.
    rows = [(code(getattr(guard, "__name__", "")), plain(guard.__doc__)) for guard in guards]
    return table(("guard", "holds"), rows)
