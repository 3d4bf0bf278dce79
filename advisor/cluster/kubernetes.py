"""The real cluster, read-only in this version: NodePools, NodeClaims, nodes, and pods that ask for GPUs.

Lists are paged, every call has a read timeout, and each object is cut down to what advice needs as soon
as its page arrives. :class:`KubernetesObjects` hands on objects of any kind as they are. This is the only module that
imports the Kubernetes client.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from kubernetes import client, config
from urllib3.exceptions import HTTPError

from advisor.clock import Clock
from advisor.cluster.assembly import Seen, assemble
from advisor.cluster.documents import parts
from advisor.cluster.objects import Expired, Json, NotServed, ObjectKind, Page, WatchEvent, WatchType
from advisor.cluster.port import Applied, ClusterWrite
from advisor.cluster.projection import (
    POOL_LABEL,
    read_buffer,
    read_claim,
    read_node,
    read_pod,
    read_pool,
    read_slice_setting,
)
from advisor.domain.nodepools import ClusterSnapshot
from advisor.errors import Refused, Transient

__all__ = ["KubernetesCluster", "KubernetesObjects"]

T = TypeVar("T")

_PAGE = 500
_CONNECT_SECONDS = 5.0
_READ_SECONDS = 30.0
_QUIET_SECONDS = 90.0
"""A watch is told something every minute, a bookmark if nothing else; one that is silent for longer is dead."""
_NOT_ENDED = "status.phase!=Succeeded,status.phase!=Failed"
_UNKNOWN = 401
_GONE = 410
_NOT_FOUND = 404
_TOO_MANY = 429


class KubernetesCluster:
    """A cluster behind the API server; see :class:`advisor.cluster.port.ClusterPort`."""

    def __init__(self, api: client.ApiClient, clock: Clock, namespace: str = "gpu-slice-advisor") -> None:
        """Speak through ``api``; our own objects live in ``namespace``."""
        self._core = client.CoreV1Api(api)
        self._custom = client.CustomObjectsApi(api)
        self._clock = clock
        self._namespace = namespace

    @classmethod
    def connect(
        cls,
        clock: Clock,
        kubeconfig: Path | None = None,
        context: str | None = None,
        namespace: str = "gpu-slice-advisor",
    ) -> KubernetesCluster:
        """A cluster by kubeconfig; without one, the service account of the pod, then the default kubeconfig.

        Raises:
            Refused: none of them can be read.
        """
        return cls(_connected(kubeconfig, context), clock, namespace)

    def observe(self) -> ClusterSnapshot:
        """The cluster now; its time is the moment before the first list, so nothing in it is older.

        Raises:
            Transient: the API server is unreachable, overloaded, or answered no JSON.
            Refused: it denies this program a list, or serves no NodePools.
        """
        time = self._clock.now()
        notes: list[str] = []
        pools = self._read("nodepools", self._karpenter("nodepools"), read_pool, notes)
        claims = self._read("nodeclaims", self._karpenter("nodeclaims"), read_claim, notes)
        nodes = self._read("nodes", self._core.list_node, read_node, notes)
        pods = self._read("pods", self._pods(), read_pod, notes)
        seen = Seen(
            pools=pools,
            nodes=nodes,
            claims=[claim for claim in claims if claim is not None],
            pods=[pod for pod in pods if pod is not None],
            buffers=dict(self._buffers(notes)),
            slice_minutes=dict(self._read("configmaps", self._config_maps(), read_slice_setting, notes)),
            notes=tuple(notes),
        )
        return assemble(time, seen)

    def apply(self, write: ClusterWrite) -> Applied:
        """Refused: this version writes nothing to Kubernetes.

        Raises:
            Refused: always.
        """
        raise Refused(
            "apply",
            write.pool,
            "apply on Kubernetes is not part of this version",
            "Use the YAML printed with kubectl apply --server-side.",
        )

    def _karpenter(self, plural: str) -> Callable[..., Any]:
        return lambda **query: self._custom.list_cluster_custom_object("karpenter.sh", "v1", plural, **query)

    def _pods(self) -> Callable[..., Any]:
        return lambda **query: self._core.list_pod_for_all_namespaces(field_selector=_NOT_ENDED, **query)

    def _config_maps(self) -> Callable[..., Any]:
        return lambda **query: self._core.list_namespaced_config_map(
            self._namespace, label_selector=POOL_LABEL, **query
        )

    def _buffers(self, notes: list[str]) -> list[tuple[str, Any]]:
        def ask(**query: Any) -> Any:  # noqa: ANN401 - the client is untyped
            return self._custom.list_namespaced_custom_object(
                "autoscaling.x-k8s.io",
                "v1beta1",
                self._namespace,
                "capacitybuffers",
                label_selector=POOL_LABEL,
                **query,
            )

        try:
            return self._read("capacitybuffers", ask, read_buffer, notes)
        except _NotServed:
            notes.append("this cluster serves no CapacityBuffer (autoscaling.x-k8s.io/v1beta1): none can keep it warm")
            return []

    def _read(
        self, what: str, ask: Callable[..., Any], read: Callable[[Mapping[str, Any]], T], notes: list[str]
    ) -> list[T]:
        """Every object of one kind, cut down; those that cannot be understood are counted, with the first reason."""
        try:
            found, odd = _cut_down(what, ask, read)
        except _ListExpired:
            # The server dropped the list between two pages: once is ordinary, twice is not.
            try:
                found, odd = _cut_down(what, ask, read)
            except _ListExpired as error:
                raise Transient(f"the list of {what} expired twice between pages; ask again later") from error
        if odd:
            notes.append(f"{len(odd)} {what} were left out; the first because {odd[0]}")
        return found


class KubernetesObjects:
    """Objects of any kind behind the API server; see :class:`advisor.cluster.objects.ObjectReader`."""

    def __init__(self, api: client.ApiClient, name: str) -> None:
        """Speak through ``api`` to the cluster that people call ``name``."""
        self._api = api
        self._name = name
        self._paths: dict[ObjectKind, str] = {}

    @classmethod
    def connect(cls, kubeconfig: Path | None = None, context: str | None = None) -> KubernetesObjects:
        """A cluster as :meth:`KubernetesCluster.connect` finds it, by the name that its kubeconfig gives it.

        Raises:
            Refused: no configuration can be read.
        """
        return cls(_connected(kubeconfig, context), _cluster_name(kubeconfig, context))

    @property
    def name(self) -> str:
        """What the kubeconfig calls the cluster; ``in-cluster`` from within."""
        return self._name

    def list(self, kind: ObjectKind, limit: int, token: str | None) -> Page:
        """One page; of a kind with several versions the first that is served, from then on always that."""
        query: dict[str, Any] = {"limit": limit, **({} if token is None else {"continue": token})}
        known = self._paths.get(kind)
        for path in kind.paths if known is None else (known,):
            try:
                response = self._get(kind, path, query, _READ_SECONDS)
                body = _parsed(kind, response.data)
            except NotServed:
                continue
            except (HTTPError, OSError) as error:
                raise Transient(f"the API server could not be asked for {kind.plural}: {error}") from error
            self._paths[kind] = path
            metadata = body.get("metadata") or {}
            return Page(
                tuple(parts(body, "items")),
                str(metadata.get("resourceVersion") or ""),
                metadata.get("continue") or None,
            )
        raise NotServed(f"this cluster serves no {kind.resource}")

    def watch(self, kind: ObjectKind, version: str, timeout_seconds: float) -> Iterator[WatchEvent]:
        """Events with bookmarks; the server ends the watch after the timeout, and we one that is dead."""
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": max(int(timeout_seconds), 1),
        }
        quiet = min(timeout_seconds + _CONNECT_SECONDS, _QUIET_SECONDS)
        try:
            response = self._get(kind, self._paths.get(kind, kind.paths[0]), query, quiet)
            try:
                for line in _lines(response.stream(None)):
                    yield _event(kind, _parsed(kind, line))
            finally:
                response.close()
        except (HTTPError, OSError) as error:
            raise Transient(f"the watch of {kind.plural} broke: {error}") from error

    def _get(self, kind: ObjectKind, path: str, query: Mapping[str, Any], read_seconds: float) -> Any:  # noqa: ANN401 - urllib3's response
        parameters = self._api.param_serialize(
            "GET",
            path,
            query_params=list(query.items()),
            header_params={"Accept": "application/json"},
            auth_settings=["BearerToken"],
        )
        try:
            answer = self._api.call_api(*parameters, _request_timeout=(_CONNECT_SECONDS, read_seconds))
        except client.ApiException as error:
            raise Transient(f"the API server could not be asked for {kind.plural}: {error.reason}") from error
        if not 200 <= answer.status < 300:
            answer.response.close()
            raise _unanswered(kind, answer.status, str(answer.reason))
        return answer.response


def _unanswered(kind: ObjectKind, status: int, reason: str) -> Exception:
    if status == _GONE:
        return Expired(f"{kind.plural}: {status} {reason}")
    if status == _NOT_FOUND:
        return NotServed(f"this cluster serves no {kind.resource}")
    if status == _TOO_MANY or status >= 500:
        return Transient(f"the API server answered {status} {reason} to a read of {kind.plural}")
    if status == _UNKNOWN:
        return _not_known(status, reason)
    rule = f'{{apiGroups: ["{kind.group}"], resources: ["{kind.plural}"], verbs: ["get", "list", "watch"]}}'
    return Refused(
        kind.plural, f"{status} {reason}", "the API server lets us read none of them", f"Add to our ClusterRole: {rule}"
    )


def _not_known(status: int, reason: object) -> Refused:
    limit = "the API server knows nobody by these credentials"
    return Refused("kubeconfig", f"{status} {reason}", limit, "Renew them, or choose --kubeconfig or --context anew.")


def _parsed(kind: ObjectKind, body: bytes) -> Json:
    try:
        found = json.loads(body)
    except ValueError as error:
        raise Transient(f"what the API server answered about {kind.plural} is no JSON") from error
    if not isinstance(found, Mapping):
        raise Transient(f"what the API server answered about {kind.plural} is no object")
    return found


def _lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (line for line in whole if line.strip())
    # What follows the last line end was cut off, and will be told again.


def _event(kind: ObjectKind, line: Json) -> WatchEvent:
    document = line.get("object")
    document = document if isinstance(document, Mapping) else {}
    if line.get("type") == "ERROR":
        status = f"{document.get('code')} {document.get('reason')}: {document.get('message')}"
        if document.get("code") == _GONE or document.get("reason") in ("Expired", "Gone"):
            raise Expired(f"{kind.plural}: {status}")
        raise Transient(f"the watch of {kind.plural} was ended: {status}")
    if line.get("type") not in set(WatchType):
        raise Transient(f"the watch of {kind.plural} told a line that is no event")
    return WatchEvent(WatchType(str(line["type"])), document)


def _connected(kubeconfig: Path | None, context: str | None) -> client.ApiClient:
    settings = client.Configuration()
    # Retrying is the caller's decision; it knows how old its last observation is.
    settings.retries = False
    try:
        _load(settings, kubeconfig, context)
    except (config.ConfigException, OSError) as error:
        raise _no_way_in(kubeconfig, error) from error
    return client.ApiClient(settings)


def _no_way_in(kubeconfig: Path | None, error: Exception) -> Refused:
    if kubeconfig is None:
        limit = f"neither a pod's service account nor kubectl's default file can be used: {error}"
        return Refused("kubeconfig", None, limit, "Give one that kubectl takes.")
    limit = f"it cannot be used: {error}" if kubeconfig.is_file() else "there is no such file"
    return Refused("kubeconfig", str(kubeconfig), limit, "Give one that kubectl takes.")


def _cluster_name(kubeconfig: Path | None, context: str | None) -> str:
    if kubeconfig is None and context is None and os.environ.get("KUBERNETES_SERVICE_HOST"):
        return "in-cluster"
    contexts_of: Callable[..., Any] = config.list_kube_config_contexts
    contexts, active = contexts_of(None if kubeconfig is None else str(kubeconfig))
    chosen = active if context is None else next(each for each in contexts if each["name"] == context)
    return str(chosen["context"].get("cluster") or chosen["name"])


class _NotServed(Refused):
    """The API server knows no such kind."""


class _ListExpired(Exception):
    """The list went away between two pages and must be begun again; never leaves this module."""


def _load(settings: client.Configuration, kubeconfig: Path | None, context: str | None) -> None:
    in_cluster: Callable[..., None] = config.load_incluster_config
    from_file: Callable[..., None] = config.load_kube_config
    if kubeconfig is None and context is None:
        try:
            in_cluster(client_configuration=settings)
        except config.ConfigException:
            from_file(client_configuration=settings)
        return
    file = None if kubeconfig is None else str(kubeconfig)
    from_file(config_file=file, context=context, client_configuration=settings)


def _cut_down(
    what: str, ask: Callable[..., Any], read: Callable[[Mapping[str, Any]], T]
) -> tuple[list[T], list[Refused]]:
    """What was read and what was not understood, page by page, so that no more than a page is held as JSON."""
    found: list[T] = []
    odd: list[Refused] = []
    for document in _walk(what, ask):
        try:
            found.append(read(document))
        except Refused as error:
            odd.append(error)
    return found, odd


def _walk(what: str, ask: Callable[..., Any]) -> Iterator[Mapping[str, Any]]:
    token: str | None = None
    while True:
        page = _page(what, ask, token)
        yield from page.get("items") or ()
        before, token = token, (page.get("metadata") or {}).get("continue") or None
        if token is None:
            return
        if token == before:
            raise Transient(f"the API server answers the same page of {what} again and again")


def _page(what: str, ask: Callable[..., Any], token: str | None) -> Mapping[str, Any]:
    query: dict[str, Any] = {"limit": _PAGE, "_preload_content": False}
    if token is not None:
        query["_continue"] = token
    try:
        body = ask(**query, _request_timeout=(_CONNECT_SECONDS, _READ_SECONDS)).data
        page = json.loads(body)
    except client.ApiException as error:
        raise _translated(what, error) from error
    except (HTTPError, OSError) as error:
        raise Transient(f"the API server could not be asked for {what}: {error}") from error
    except ValueError as error:
        raise Transient(
            f"the answer to the list of {what} is no JSON; is something between us and the API server?"
        ) from error
    if not isinstance(page, Mapping):
        raise Transient(f"the answer to the list of {what} is no list")
    return page


def _translated(what: str, error: client.ApiException) -> Exception:
    status = error.status or 0
    if status == _GONE:
        return _ListExpired()
    if status == _NOT_FOUND:
        return _NotServed(what, "not served", "this cluster serves no such kind", "Install Karpenter 1.x first.")
    if status == _TOO_MANY or status >= 500 or status == 0:
        return Transient(f"the API server answered {status} {error.reason} to the list of {what}")
    if status == _UNKNOWN:
        return _not_known(status, error.reason)
    return Refused(
        what, f"{status} {error.reason}", "the API server lets nobody list them", "Grant get and list on it."
    )
