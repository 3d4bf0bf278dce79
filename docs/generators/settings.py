"""The settings page: every key of the tree with its variable, type, default, limits and meaning."""

from __future__ import annotations

import json
from typing import Any

from advisor.settings import Settings
from docs.generators.markdown import code, document, plain, table

__all__ = ["settings_page"]

_INTRODUCTION = """# Settings

Every command takes `--config FILE`, a TOML file; `GSA_CONFIG` names one for all commands. A variable
of the environment wins over the file, and the file over the defaults below. A key that does not
exist, a variable `GSA_...` that sets nothing or a value out of range ends the command with exit code 3, before
anything is done.

```toml
mode = "Recommend"

[prices]
per_gpu_hour = 3.1
currency = "EUR"
```

The same price from the environment: `GSA_PRICES__PER_GPU_HOUR=3.1` (two underscores between levels)."""

_LIMITS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "minLength": "at least {} character",
    "maxLength": "at most {} characters",
}


def settings_page() -> str:
    """The page, in the order of the tree."""
    schema = Settings.model_json_schema()
    groups, single = [], []
    for name, field in schema["properties"].items():
        group = _referenced(schema, field)
        if group is not None and "properties" in group:
            groups.append(_group(schema, name, group))
        else:
            single.append(_row(schema, (name,), field))
    return document(_INTRODUCTION, "## Top level", table(_COLUMNS, single), *groups)


_COLUMNS = ("key", "variable", "type", "default", "meaning")


def _group(schema: dict[str, Any], name: str, group: dict[str, Any]) -> str:
    rows = [_row(schema, (name, key), field) for key, field in group["properties"].items()]
    return document(f"## `[{name}]`", plain(group.get("description")), table(_COLUMNS, rows))


def _row(schema: dict[str, Any], path: tuple[str, ...], field: dict[str, Any]) -> tuple[str, ...]:
    variable = "GSA_" + "__".join(path).upper()
    kind = _without_null(field)
    default = "unset" if field.get("default") is None else code(_shown(field["default"]))
    return (
        code(path[-1]),
        code(variable),
        _type(_referenced(schema, kind) or kind),
        default,
        f"{field.get('description', '')} {_limits(kind)}",
    )


def _without_null(field: dict[str, Any]) -> dict[str, Any]:
    choices = [choice for choice in field.get("anyOf", []) if choice.get("type") != "null"]
    return {**field, **choices[0]} if choices else field


def _referenced(schema: dict[str, Any], field: dict[str, Any]) -> dict[str, Any] | None:
    reference = field.get("$ref")
    return None if reference is None else schema["$defs"][reference.rsplit("/", 1)[-1]]


def _type(kind: dict[str, Any]) -> str:
    if "enum" in kind:
        return " or ".join(code(value) for value in kind["enum"])
    if kind.get("type") == "array":
        return f"list of {kind['items']['type']}"
    return "path" if kind.get("format") == "path" else str(kind["type"])


def _limits(kind: dict[str, Any]) -> str:
    limits = [text.format(f"{kind[key]:g}") for key, text in _LIMITS.items() if key in kind]
    return f"({', '.join(limits)})" if limits else ""


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
