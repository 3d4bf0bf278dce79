"""The groups of settings of where job history is read from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator

from advisor.errors import Refused, limit_and_remedy
from advisor.settings.piece import HIDDEN, Piece

__all__ = ["DcgmSettings", "PrometheusOptions", "TelemetrySettings"]


class PrometheusOptions(Piece):
    """The metrics server that history is read from: Prometheus, Thanos, Mimir or VictoriaMetrics.

    Secrets are read from files, or from the environment; they are never printed.
    """

    url: str | None = Field(
        None, description="Address as far as the API, path prefix included, such as http://host:9090."
    )
    bearer_token_file: Path | None = Field(None, description="File of a bearer token, read anew for each request.")
    bearer_token: SecretStr | None = Field(None, description="The token itself; meant for the variable.")
    username: str | None = Field(None, min_length=1, description="User of basic authentication.")
    password_file: Path | None = Field(None, description="File of that user's password.")
    password: SecretStr | None = Field(None, description="The password itself; meant for the variable.")
    ca_file: Path | None = Field(None, description="PEM file of the authorities to trust, instead of the usual ones.")
    headers: dict[str, SecretStr] = Field(
        default={}, description='Sent with each request, such as {"X-Scope-OrgID": "tenant"}.'
    )
    flavour: Literal["auto", "prometheus", "thanos", "mimir", "victoriametrics"] = Field(
        "auto", description="What kind of server it is; auto asks it."
    )
    step_seconds: int = Field(60, ge=1, le=3600, description="Time between two samples asked for.")
    days: float = Field(14.0, gt=0, le=3650, description="How far back history is read at first.")
    concurrency: int = Field(4, ge=1, le=32, description="Most requests at a time.")
    timeout_seconds: float = Field(60.0, gt=0, le=3600, description="Longest wait for an answer to begin or go on.")
    retries: int = Field(8, ge=0, le=20, description="Further tries of a request once the server has answered any.")
    cluster_label: str = Field(
        "cluster", pattern="^[a-zA-Z_][a-zA-Z0-9_]*$", description="Label that tells clusters apart on a shared server."
    )
    cluster: str | None = Field(None, min_length=1, description="Its value; only such series are asked for.")

    secret_or_may_hold_one: ClassVar[frozenset[str]] = frozenset({"url", "bearer_token", "password", "headers"})

    def replaced(self, **given: str | float | None) -> PrometheusOptions:
        """The same but for what was ``given``; None leaves a value as it is.

        Raises:
            Refused: a value that may not be.
        """
        news = {name: value for name, value in given.items() if value is not None}
        try:
            return PrometheusOptions(**{**{name: getattr(self, name) for name in type(self).model_fields}, **news})
        except ValidationError as error:
            first = error.errors()[0]
            field = str(first["loc"][0]) if first["loc"] else "prometheus"
            limit, remedy = limit_and_remedy(first)
            raise Refused(field, _shown(field, first.get("input")), limit, remedy) from error

    @field_validator("url")
    @classmethod
    def _plain_url(cls, url: str | None) -> str | None:
        return None if url is None else _without_secrets(url)

    @field_validator("headers")
    @classmethod
    def _sendable(cls, headers: dict[str, SecretStr]) -> dict[str, SecretStr]:
        for name, value in headers.items():
            text = value.get_secret_value()
            if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name) or not (text.isascii() and text.isprintable()):
                raise ValueError("a header is a plain name and a line of printable ASCII")
        return headers

    @model_validator(mode="after")
    def _one_way_in(self) -> PrometheusOptions:
        token = self.bearer_token_file, self.bearer_token
        password = self.password_file, self.password
        if None not in token or None not in password:
            raise ValueError("a secret is given either as a file or as itself, not both")
        if (self.username is None) != (password == (None, None)):
            raise ValueError("username and a password (password_file) go together")
        if token != (None, None) and self.username is not None:
            raise ValueError("a bearer token and a username exclude each other")
        return self


def _shown(field: str, given: object) -> object:
    """What was given, unless it may hold a secret: a user, a password or a query."""
    return HIDDEN if field == "url" and any(mark in str(given) for mark in "@?#") else given


def _without_secrets(url: str) -> str:
    """``url`` if it is an address and nothing else.

    Raises:
        ValueError: it is none, or holds a password or a query; what it holds is not repeated.
    """
    try:
        parts = urlsplit(url)
        known = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        known = None
    if "://" not in url:
        raise ValueError("http:// or https:// is missing before the host, as in http://host:9090")
    if not known or not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError("the address is http:// or https://, a host, perhaps a port and a path")
    if "@" in parts.netloc:
        raise ValueError("the address holds no user or password: set username and password_file instead")
    if parts.query or parts.fragment:
        raise ValueError("the address ends before any ? or #: a secret goes into headers or bearer_token_file")
    return url


class DcgmSettings(Piece):
    """Units of dcgm-exporter, where you know them better than names and values tell; of all exporters alike."""

    exporter_version: str | None = Field(
        None, min_length=1, description="Version of every exporter, such as 4.8.2: from 4.9 on it counts otherwise."
    )
    utilisation: Literal["ratio", "percent"] | None = Field(
        None, description="Unit of DCGM_FI_DEV_GPU_UTIL and its later names; unset: decided by what is known."
    )
    profiling: Literal["ratio", "percent"] | None = Field(
        None, description="Unit of DCGM_FI_PROF_SM_ACTIVE, _GR_ENGINE_ACTIVE and their later names."
    )
    memory: Literal["bytes", "mib"] | None = Field(None, description="Unit of DCGM_FI_DEV_FB_... (memory).")
    energy: Literal["joules", "millijoules"] | None = Field(None, description="Unit of the energy counter.")


class TelemetrySettings(Piece):
    """How job history is read from live systems."""

    user_labels: tuple[str, ...] = Field(
        ("slice-advisor.io/user", "user", "username", "owner", "created-by", "hub.jupyter.org/username"),
        description="Labels of pods, and of what creates them, that name the user; the first that is there counts.",
    )
