"""What a failed answer means for whoever asked: mend it, or try again later."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from advisor.errors import AdvisorError, Refused, Transient

__all__ = ["TooMuch", "no_api", "refusal", "said"]

_LONGEST = 300
_PAGE = b"<"

_TOO_MUCH = re.compile(r"too many|exceed|cannot select more", re.IGNORECASE)
_REMEDIES = {
    401: "Set prometheus.bearer_token_file, or prometheus.username and password_file.",
    403: "The account may not read here; give one that may, and the tenant in prometheus.headers if there is one.",
    404: "Check the path: Mimir serves below /prometheus, a VictoriaMetrics cluster below /select/0/prometheus.",
    413: "Allow larger requests on the way to the server.",
    414: "Let POST through to the server: the query is too long for GET.",
}


class TooMuch(Refused):
    """A query whose answer is larger than the server allows; of less time it may be answered."""


def refusal(status: int, headers: Mapping[str, str], body: bytes, query: str | None) -> AdvisorError:
    """The error of an answer with ``status`` that another try would not mend; ``query`` is what was asked, if any."""
    text = said(body) or f"no more than HTTP {status}"
    if 300 <= status < 400:
        target = headers.get("location", "").split("?")[0]
        limit = f"the server redirects (HTTP {status}) to {_host(target)}, perhaps to sign in"
        return Refused("prometheus.url", _GIVEN, limit, "Give the address it redirects to, or credentials.")
    if status >= 500:
        return Transient(f"The metrics server failed (HTTP {status}): {text}")
    if status in _REMEDIES:
        return Refused("prometheus", f"HTTP {status}", f"the server said: {text}", _REMEDIES[status])
    limit = f"the server said (HTTP {status}): {text}"
    if _TOO_MUCH.search(text):
        return TooMuch("query", query, limit, "Ask for fewer series at a time, or raise the server's limit.")
    return Refused("query", query, limit, "Correct the query, or the settings it is made of.")


_GIVEN = "the address given"
"""In place of the address itself, which may be told only where its user sees it."""


def no_api(content_type: str, body: bytes, why: str) -> Refused:
    """The error of an answer that came with success and is not of this API: a login page, most often."""
    if "html" in content_type or body.lstrip()[:1] == _PAGE:
        title = re.search(rb"<title[^>]*>(.*?)</title>", body, re.IGNORECASE | re.DOTALL)
        named = f" ({_cut(title[1].decode(errors='replace'))})" if title else ""
        limit = f"it answers with a web page{named}, not with JSON; a page to sign in?"
        return Refused("prometheus.url", _GIVEN, limit, "Give credentials, or the address of the API behind that page.")
    return Refused("prometheus.url", _GIVEN, f"what answers is no Prometheus: {why}", "Give the address of the API.")


def said(body: bytes) -> str:
    """What an error's body says in words, on one line; empty where it says nothing."""
    try:
        found = json.loads(body)
    except ValueError:
        page = re.sub(rb"<(script|style).*?</\1>|<[^>]*>", b" ", body[:20_000], flags=re.IGNORECASE | re.DOTALL)
        return _cut(page.decode(errors="replace"))
    error = found.get("error") if isinstance(found, dict) else found
    return _cut(str(error or ""))


def _host(target: str) -> str:
    return re.sub(r"//[^/@]*@", "//", target) or "nowhere"


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
