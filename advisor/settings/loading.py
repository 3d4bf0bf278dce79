"""The tree of settings, and how it is read: the environment over a file over the defaults."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError

from advisor.domain.plans import Mode
from advisor.errors import Refused, limit_and_remedy
from advisor.settings.groups import (
    DemandSettings,
    DurationSettings,
    GuardSettings,
    PriceSettings,
    ServerSettings,
    SliceSettings,
    StorageSettings,
    WarmSettings,
)
from advisor.settings.piece import HIDDEN
from advisor.settings.telemetry import DcgmSettings, PrometheusOptions, TelemetrySettings

__all__ = ["Settings", "load_settings"]

_PREFIX = "GSA_"
_OTHER_NAMES = ("GSA_CONFIG", *(f"GSA_BENCH_{what}" for what in ("HOME", "TRACE", "FORMAT", "JOBS")))
"""Variables of ours that are no settings: the file of settings, and what benchmarks are run on."""
_SERVICE = re.compile(r"GSA(_[A-Z0-9_]+)?_(SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)|PORT_\d+_(TCP|UDP|SCTP)(_[A-Z]+)?)")


class Settings(BaseSettings):
    """The whole tree."""

    model_config = SettingsConfigDict(
        env_prefix=_PREFIX, env_nested_delimiter="__", frozen=True, extra="forbid", hide_input_in_errors=True
    )

    mode: Mode = Field(Mode.RECOMMEND, description="Observe, Recommend or Apply.")
    storage: StorageSettings = StorageSettings()
    prices: PriceSettings = PriceSettings()
    durations: DurationSettings = DurationSettings()
    demand: DemandSettings = DemandSettings()
    slices: SliceSettings = SliceSettings()
    warm: WarmSettings = WarmSettings()
    guards: GuardSettings = GuardSettings()
    prometheus: PrometheusOptions = PrometheusOptions()
    dcgm: DcgmSettings = DcgmSettings()
    server: ServerSettings = ServerSettings()
    telemetry: TelemetrySettings = TelemetrySettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment wins over the file, whose content arrives as keyword arguments."""
        del settings_cls, dotenv_settings, file_secret_settings
        return env_settings, init_settings


def load_settings(file: Path | None = None) -> Settings:
    """The settings of the environment over those of ``file`` (TOML) over the defaults.

    Raises:
        Refused: the file cannot be read or parsed, or a value is unknown or out of range; the field is named.
    """
    content: dict[str, Any] = {} if file is None else _parsed(file)
    _check_names(os.environ)
    try:
        return Settings(**content)
    except SettingsError as error:
        raise _unreadable(error) from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "settings"
        limit, _ = limit_and_remedy(first)
        shown = HIDDEN if _may_hold_a_secret(first["loc"]) else first.get("input")
        raise Refused(field, shown, limit, "Correct the file or the GSA_ variable.") from error


def _may_hold_a_secret(path: tuple[int | str, ...]) -> bool:
    """Whether what was given there must not be repeated: a secret, its misspelt key, or the group of both."""
    if not path or path[0] != "prometheus":
        return False
    open_keys = PrometheusOptions.model_fields.keys() - PrometheusOptions.secret_or_may_hold_one
    return len(path) == 1 or path[1] not in open_keys


def _known_names() -> tuple[str, ...]:
    """Every variable that sets something: each group as a whole (JSON), and each key of it."""
    names = list(Settings.model_fields)
    for group, field in Settings.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            names += [f"{group}__{key}" for key in field.annotation.model_fields]
    return tuple(f"{_PREFIX}{name}".upper() for name in names)


def _check_names(variables: Mapping[str, str]) -> None:
    """Nothing where every variable of our prefix means something.

    Raises:
        Refused: one that nobody reads, so that a misspelt setting is no silence.
    """
    known = (*_known_names(), *_OTHER_NAMES)
    keys = [one.removeprefix(_PREFIX) for one in known if "__" in one or one == f"{_PREFIX}MODE"]
    for name, value in variables.items():
        if not name.upper().startswith(_PREFIX) or name.upper() in known or _of_a_service(name, value):
            continue
        near = get_close_matches(name.upper().removeprefix(_PREFIX), keys, n=1, cutoff=0.75)
        remedy = (
            f"Did you mean {_PREFIX}{near[0]}?" if near else "Unset it; the reference of settings lists every name."
        )
        raise Refused("environment", name, "no setting has this name", remedy)


def _of_a_service(name: str, value: str) -> bool:
    """What Kubernetes sets in every pod beside a Service whose name begins with ``gsa``."""
    return _SERVICE.fullmatch(name) is not None or (name.endswith("_PORT") and "://" in value)


def _unreadable(error: SettingsError) -> Refused:
    found = re.search(r'field "(\w+)"', str(error))
    field = found[1] if found else "environment"
    limit = "a list and a whole group are read from the environment as JSON"
    return Refused(field, None, limit, f"Write a list as [5, 15], and set each key by itself ({_PREFIX}...__...).")


def _parsed(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise Refused("--config", str(file), "the file cannot be read", f"{error.strerror}. Check the path.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Refused("--config", str(file), f"it is not TOML: {error}", "Correct the syntax.") from error
