"""How a request proves who sends it, and how nothing of that gets into a message."""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
from pydantic import SecretStr

from advisor.errors import Refused
from advisor.settings import PrometheusOptions

__all__ = ["Credentials", "cautions", "trusted"]

_MASK = "***"


class Credentials(httpx.Auth):
    """Signs each request with the token or password of ``options``, read anew so that a rotated file is followed.

    Raises:
        Refused: a file cannot be read, is empty or holds what cannot be sent.
    """

    def __init__(self, options: PrometheusOptions) -> None:
        """Read the secrets once, so that a wrong path is told before the first request."""
        self._options = options
        self._known = {value.get_secret_value() for value in options.headers.values()}
        self._signature()

    def auth_flow(self, request: httpx.Request) -> Iterator[httpx.Request]:  # type: ignore[override]
        """The request with its header; nothing is answered to a challenge."""
        signed = self._signature()
        yield request if signed is None else next(signed.auth_flow(request))

    def _signature(self) -> httpx.Auth | None:
        given = self._options
        token = self._secret("bearer_token", given.bearer_token, given.bearer_token_file)
        if token is not None:
            return _Bearer(token)
        password = self._secret("password", given.password, given.password_file)
        return None if given.username is None or password is None else httpx.BasicAuth(given.username, password)

    def _secret(self, key: str, itself: SecretStr | None, file: Path | None) -> str | None:
        if itself is None and file is None:
            return None
        field = f"prometheus.{key}" if file is None else f"prometheus.{key}_file"
        shown = "(not shown)" if file is None else str(file)
        text = (itself.get_secret_value() if itself is not None else _content(field, file)).strip()
        if not text or not text.isascii() or not text.isprintable():
            raise Refused(field, shown, "a secret is one line of printable ASCII", "Correct what it holds.")
        self._known.add(text)
        return text

    def masked(self, text: str) -> str:
        """``text`` with each secret that was ever sent replaced: a server may repeat what it was sent."""
        # The longest first, since one may be part of another; very short ones would take words apart.
        for secret in sorted(self._known, key=len, reverse=True):
            if len(secret) >= 4:
                text = text.replace(secret, _MASK)
        return text


class _Bearer(httpx.Auth):
    def __init__(self, token: str) -> None:
        self._token = token

    def auth_flow(self, request: httpx.Request) -> Iterator[httpx.Request]:  # type: ignore[override]
        request.headers["Authorization"] = f"Bearer {self._token}"
        yield request


def _content(field: str, file: Path | None) -> str:
    try:
        return "" if file is None else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(field, str(file), "the file cannot be read", "Check the path and who may read it.") from error


def trusted(options: PrometheusOptions) -> ssl.SSLContext | bool:
    """The authorities to trust: those of ``ca_file``, or True for the usual ones.

    Raises:
        Refused: the file cannot be read or holds no certificate.
    """
    if options.ca_file is None:
        return True
    try:
        return ssl.create_default_context(cafile=str(options.ca_file))
    except (OSError, ssl.SSLError) as error:
        limit = "no certificate can be read from it"
        raise Refused("prometheus.ca_file", str(options.ca_file), limit, "Give a PEM file.") from error


def cautions(options: PrometheusOptions) -> tuple[str, ...]:
    """What is allowed but unwise in ``options``, as sentences."""
    parts = urlsplit(options.url or "")
    secret = (options.bearer_token, options.bearer_token_file, options.username) != (None, None, None)
    secret = secret or any(name.lower() == "authorization" for name in options.headers)
    if parts.scheme != "http" or not secret or _loopback(parts.hostname or ""):
        return ()
    return (f"The secret is sent to {parts.hostname} over http, readable by anybody on the way; use https.",)


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
