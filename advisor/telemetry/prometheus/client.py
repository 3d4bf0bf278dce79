"""The Prometheus HTTP API: queries as series, chunk by chunk, through outages and limits."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from itertools import islice
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from advisor.domain.ingest import Rejection
from advisor.domain.units import utc
from advisor.errors import Refused
from advisor.settings import PrometheusOptions
from advisor.telemetry.prometheus.answers import Answer, Malformed
from advisor.telemetry.prometheus.exchange import Exchange, Form
from advisor.telemetry.prometheus.flavours import ALWAYS, BuildInfo, flavour_of, prefix
from advisor.telemetry.prometheus.ranges import MOST_POINTS, Window
from advisor.telemetry.prometheus.refusals import TooMuch, no_api
from advisor.telemetry.prometheus.samples import Series, joined
from advisor.telemetry.prometheus.selectors import Matcher, Selector, narrowed

__all__ = ["PrometheusClient", "Query"]

Query = str | Selector
"""PromQL as it stands, or a selector, to which the cluster asked for is added."""

T = TypeVar("T")

_EVERY_POD = "kube_pod_created"
"""Every pod that kube-state-metrics tells of has it."""
_MOST_NAMED = 10


class PrometheusClient:
    """Asks one server; may be used by several threads, and as a context.

    What was asked may raise ``Refused`` (the server will not, and says why) and ``Transient`` (it cannot now, after
    every retry). Samples that are none are in ``rejections``, what the server remarked is in ``notes``.
    """

    def __init__(
        self,
        options: PrometheusOptions,
        *,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        jitter: random.Random | None = None,
    ) -> None:
        """Speak to ``options.url``, through ``transport`` instead of the network if one is given.

        ``sleep`` is called with seconds between tries, ``jitter`` draws how long.

        Raises:
            Refused: no address, or a file of a secret or certificate that cannot be used.
        """
        # Whether a secret can be guessed does not hang on when a request is tried again.
        draws = jitter or random.Random()  # noqa: S311
        self._exchange = Exchange(options, transport, sleep, draws)
        self._options = options
        self._build: BuildInfo | None = None
        self._finding_build = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the connections back."""
        self._exchange.close()

    @property
    def options(self) -> PrometheusOptions:
        """Where the server is, and what of it is asked for."""
        return self._options

    @property
    def notes(self) -> tuple[str, ...]:
        """What was worth a warning so far, each once: of the options, and by the server."""
        return self._exchange.notes

    @property
    def rejections(self) -> tuple[Rejection, ...]:
        """Samples left out so far, by reason."""
        return self._exchange.rejections

    def range(self, query: Query, window: Window, most_points: int = MOST_POINTS) -> Iterator[list[Series]]:
        """The series of ``query`` over ``window``, a list for each chunk, in order of time.

        A series comes once in each chunk in which it has samples. At most ``concurrency`` chunks are held. A chunk
        that is more than the server allows at once is asked for in halves.
        """
        return (series for (series,) in self.ranges([query], window, most_points))

    def ranges(
        self, queries: Sequence[Query], window: Window, most_points: int = MOST_POINTS
    ) -> Iterator[tuple[list[Series], ...]]:
        """For each chunk of ``window``, in order of time, the series of each of ``queries``, in their order."""
        asks = ((query, chunk) for chunk in window.chunks(most_points) for query in queries)
        answers = self._in_order(asks)
        try:
            while queries and len(found := tuple(islice(answers, len(queries)))) == len(queries):
                yield found
        finally:
            answers.close()

    def instant(self, query: Query, at: datetime) -> list[Series]:
        """The series of ``query`` at one moment, each with one sample (more where it selects a range)."""
        form: Form = {"query": self._text(query), "time": f"{utc(at, 'at').timestamp():.3f}"}
        return self._series("query", form)

    def series_names(self, selectors: Iterable[Selector], start: datetime, end: datetime) -> list[str]:
        """Names of the metrics that have series among ``selectors`` between two moments, in order."""
        return self.label_values("__name__", selectors, start, end)

    def label_values(self, label: str, selectors: Iterable[Query], start: datetime, end: datetime) -> list[str]:
        """Values that ``label`` takes among ``selectors`` between two moments, in order."""
        form: Form = {
            "match[]": [self._text(selector) for selector in selectors],
            "start": f"{utc(start, 'start').timestamp():.3f}",
            "end": f"{utc(end, 'end').timestamp():.3f}",
        }
        name = Matcher(label, "=", "").label
        return sorted(_understood(self._ask(f"label/{name}/values", form, post=False), Answer.texts))

    def wrong_cluster(self, start: datetime, end: datetime) -> tuple[str, str] | None:
        """What is wrong with the cluster asked for, and the remedy; None where none is, or its pods are told of."""
        label, wanted = self._options.cluster_label, self._options.cluster
        if wanted is None or wanted in (found := self.label_values(label, [_EVERY_POD], start, end)):
            return None
        limit = f"no series of kube-state-metrics has it as label {label}"
        if not found:
            return f"{limit}, and none has that label", "Leave the cluster out, or set prometheus.cluster_label."
        more = " (and others)" if len(found) > _MOST_NAMED else ""
        return limit, f"Use one that there is: {', '.join(found[:_MOST_NAMED])}{more}."

    def build_info(self) -> BuildInfo:
        """What the server is; asked once. A flavour named in the options is believed."""
        with self._finding_build:
            if self._build is None:
                self._build = self._found_build()
            return self._build

    def _found_build(self) -> BuildInfo:
        named = self._options.flavour
        try:
            answer, headers = self._exchange.ask("api/v1/status/buildinfo", {}, post=False)
        except Refused:
            # Not every server has it, and some proxies keep it back; queries will tell whether this one answers.
            return BuildInfo("prometheus" if named == "auto" else named)
        data: Mapping[str, Any] = answer.data if isinstance(answer.data, dict) else {}
        version, application = data.get("version"), data.get("application")
        return BuildInfo(
            flavour_of(data, headers) if named == "auto" else named,
            version if isinstance(version, str) else None,
            application if isinstance(application, str) else None,
        )

    def text(self, selector: Selector) -> str:
        """``selector`` as PromQL, narrowed to the cluster asked for."""
        cluster = self._options.cluster
        return str(narrowed(selector, () if cluster is None else (Matcher(self._options.cluster_label, "=", cluster),)))

    def last_stamp(self, selector: Selector, seconds: int) -> str:
        """PromQL for the moment (Unix seconds) of the last sample of each series of the last ``seconds``.

        On VictoriaMetrics ``timestamp`` is that of the question, not of the sample.
        """
        if self._flavour() == "victoriametrics":
            return f"tlast_over_time({self.text(selector)}[{seconds}s])"
        return f"timestamp({self.text(selector)})"

    def _text(self, query: Query) -> str:
        return query if isinstance(query, str) else self.text(query)

    def _in_order(self, asks: Iterable[tuple[Query, Window]]) -> Generator[list[Series]]:
        """The answers to ``asks`` in their order, while as many as may be are under way."""
        waiting: deque[Future[list[Series]]] = deque()
        pool = ThreadPoolExecutor(self._options.concurrency, thread_name_prefix="prometheus")
        try:
            for query, chunk in asks:
                waiting.append(pool.submit(self._chunk, query, chunk))
                if len(waiting) >= self._options.concurrency:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)

    def _chunk(self, query: Query, chunk: Window) -> list[Series]:
        edges = {"start": str(chunk.start), "end": str(chunk.end), "step": str(chunk.step)}
        try:
            return self._series("query_range", {"query": self._text(query), **edges})
        except TooMuch:
            if chunk.points == 1:
                raise
            # How many samples a server allows it does not say beforehand, nor we how many series there are.
            first, second = chunk.halves()
            return joined(self._chunk(query, first), self._chunk(query, second))

    def _series(self, path: str, form: Form) -> list[Series]:
        limit = f"{self._options.timeout_seconds:.0f}s" if self._options.timeout_seconds >= 1 else "1s"
        return _understood(self._ask(path, {**form, "timeout": limit}), Answer.series)

    def _ask(self, path: str, form: Form, *, post: bool = True) -> Answer:
        flavour = self._flavour()
        where = f"{prefix(flavour, self._options.url or '')}api/v1/{path}"
        return self._exchange.ask(where, {**form, **ALWAYS[flavour]}, post=post)[0]

    def _flavour(self) -> str:
        named = self._options.flavour
        return self.build_info().flavour if named == "auto" else named


def _understood(answer: Answer, reading: Callable[[Answer], T]) -> T:
    try:
        return reading(answer)
    except Malformed as error:
        raise no_api("", b"", str(error)) from error
