"""A real API server as a test speaks to it: objects as JSON, and waiting for what others make of them."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import httpx

__all__ = ["KubeApi", "Object"]

Object: TypeAlias = dict[str, Any]

_PATIENCE_SECONDS = 90
_MERGED = "application/strategic-merge-patch+json"


class KubeApi:
    """Speaks to the server at ``url`` as whom ``token`` belongs to."""

    def __init__(self, url: str, token: str, certificate: Path) -> None:
        """Trust ``certificate`` alone."""
        self._client = httpx.Client(
            base_url=url,
            headers={"Authorization": f"Bearer {token}"},
            verify=ssl.create_default_context(cafile=str(certificate)),
            trust_env=False,
            timeout=_PATIENCE_SECONDS + 10,
        )

    def read(self, path: str, **query: Any) -> Object:
        """One object, or a list."""
        return self._answer("GET", path, params=query)

    def create(self, path: str, document: Mapping[str, Any]) -> Object:
        """A new object of the collection at ``path``, as the server has made it."""
        return self._answer("POST", path, json=document)

    def patch(self, path: str, document: Mapping[str, Any], kind: str = _MERGED) -> Object:
        """The object, or its status, with ``document`` merged into it."""
        return self._answer("PATCH", path, content=json.dumps(document), headers={"Content-Type": kind})

    def delete(self, path: str, *, grace_seconds: int | None = None, **query: Any) -> None:
        """Ask for an object, or for all that ``query`` selects of a collection, to go; 0 seconds is at once."""
        grace = {} if grace_seconds is None else {"gracePeriodSeconds": grace_seconds}
        self._answer("DELETE", path, params=query, json={"propagationPolicy": "Background", **grace})

    def until(self, path: str, seen: Callable[[Sequence[Object]], bool], **query: Any) -> list[Object]:
        """The objects of a collection as soon as ``seen`` says that they are as they are to be."""
        listed = self.read(path, **query)
        there = {each["metadata"]["uid"]: each for each in listed["items"]}
        if seen(list(there.values())):
            return list(there.values())
        for event in self._watch(path, listed["metadata"]["resourceVersion"], query):
            uid = event["object"]["metadata"]["uid"]
            there[uid] = event["object"]
            if event["type"] == "DELETED":
                del there[uid]
            if seen(list(there.values())):
                return list(there.values())
        raise AssertionError(
            f"{path} {query} never came to be as awaited:\n{json.dumps(list(there.values()), indent=1)}"
        )

    def one_until(self, path: str, seen: Callable[[Object], bool]) -> Object:
        """The object at ``path`` as soon as it is as ``seen`` wants it."""
        collection, name = path.rsplit("/", 1)
        query = {"fieldSelector": f"metadata.name={name}"}
        return self.until(collection, lambda found: bool(found) and seen(found[0]), **query)[0]

    def gone(self, path: str) -> None:
        """Wait until nothing is at ``path``."""
        collection, name = path.rsplit("/", 1)
        self.until(collection, lambda found: not found, fieldSelector=f"metadata.name={name}")

    def _watch(self, path: str, version: str, query: Mapping[str, Any]) -> Iterator[Object]:
        asked = {**query, "watch": "true", "resourceVersion": version, "timeoutSeconds": _PATIENCE_SECONDS}
        with self._client.stream("GET", path, params=asked) as told:
            told.raise_for_status()
            for line in told.iter_lines():
                yield json.loads(line)

    def _answer(self, method: str, path: str, **more: Any) -> Object:
        answer = self._client.request(method, path, **more)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        found: Object = answer.json()
        return found

    def close(self) -> None:
        """Give back the connections."""
        self._client.close()
