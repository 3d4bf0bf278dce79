"""Contexts into markup and into JSON: the same values, two ways."""

from __future__ import annotations

import dataclasses
import json
from datetime import datetime
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from advisor.errors import Defect
from dashboards.assets import Assets
from dashboards.fields import explanations
from dashboards.formats import FORMATS

__all__ = ["Renderer", "as_json"]

_TEMPLATES = Path(__file__).parent / "templates"


class Renderer:
    """Renders one template from one context; a name that a template misspells is an error, not a blank."""

    def __init__(self, assets: Assets) -> None:
        """Read every template; ``assets`` tell the addresses and texts of scripts and styles."""
        self._environment = Environment(
            loader=FileSystemLoader(_TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.filters.update(FORMATS)
        self._environment.policies["json.dumps_kwargs"] = {"allow_nan": False}
        self._environment.globals["asset"] = assets.url
        self._environment.globals["inline"] = assets.text
        # Read at the start: a mistake shows then, and an upgrade on disk never mixes with the running version.
        for name in self._environment.list_templates(extensions=["html"]):
            self._environment.get_template(name)

    def page(self, template: str, context: object, kind: type) -> str:
        """``context`` through ``template``, with the help texts of its class ``kind`` beside it.

        Raises:
            Defect: a figure holds a number that is not finite.
        """
        found = self._environment.get_template(template)
        try:
            return found.render(page=context, help=explanations(kind))
        except ValueError as error:
            raise Defect(f"{template} cannot be rendered: {error}") from error

    def error(self, status: int, title: str, detail: str) -> str:
        """The page that is shown where another cannot be."""
        return self._environment.get_template("error.html").render(status=status, title=title, detail=detail)


def as_json(context: object) -> str:
    """The context as a JSON document.

    Raises:
        Defect: it holds a number that is not finite.
    """
    try:
        return json.dumps(_plain(context), allow_nan=False)
    except ValueError as error:
        raise Defect(f"a page context cannot be written as JSON: {error}") from error


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
