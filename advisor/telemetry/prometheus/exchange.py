"""One request and its answer, tried again while trying again may help."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

import httpx

from advisor.domain.ingest import Rejection
from advisor.errors import AdvisorError, Refused, Transient, sentences
from advisor.settings import PrometheusOptions
from advisor.telemetry.prometheus.answers import Answer, Failed, Malformed, parse
from advisor.telemetry.prometheus.credentials import Credentials, cautions, trusted
from advisor.telemetry.prometheus.refusals import no_api, refusal, said
from advisor.telemetry.prometheus.retries import LONGEST_PAUSE_SECONDS, RETRIED, Again, asked_pause, pause
from advisor.telemetry.tally import RejectionTally

__all__ = ["Exchange", "Form"]

Form = Mapping[str, str | list[str]]

_CONNECT_SECONDS = 10.0
_NOT_ALLOWED = 405
_REACH = "Check the address, that the server runs, and that this machine may reach it"
_AT_FIRST = 2
"""Retries until a server has answered once: a wrong address should be told soon."""


def _server(url: str) -> str:
    """Where the server is, without the path, which may name a tenant."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _in_words(error: Exception) -> str:
    """What went wrong on the way, without the number of the system's error."""
    return re.sub(r"^\[Errno -?\d+\] ", "", str(error)) or type(error).__name__


class Exchange:
    """Sends forms to one server and collects what its answers say besides; may be used by several threads."""

    def __init__(
        self,
        options: PrometheusOptions,
        transport: httpx.BaseTransport | None,
        sleep: Callable[[float], None],
        jitter: random.Random,
    ) -> None:
        """Speak to ``options.url``, through ``transport`` instead of the network if one is given.

        Raises:
            Refused: no address, or a file of a secret or certificate that cannot be used.
        """
        if options.url is None:
            raise Refused("prometheus.url", None, "an address is needed", "Set it, or GSA_PROMETHEUS__URL.")
        self._where = _server(options.url)
        self._retries = options.retries
        self._credentials = Credentials(options)
        self._sleep, self._jitter = sleep, jitter
        self._lock = threading.Lock()
        self._get_only = False
        self._answered = False
        self._tally = RejectionTally()
        self._notes: dict[str, None] = dict.fromkeys(cautions(options))
        self._http = httpx.Client(
            base_url=options.url,
            auth=self._credentials,
            headers={name: value.get_secret_value() for name, value in options.headers.items()},
            verify=trusted(options),
            transport=transport,
            timeout=httpx.Timeout(
                options.timeout_seconds, connect=min(_CONNECT_SECONDS, options.timeout_seconds), pool=None
            ),
            limits=httpx.Limits(max_connections=options.concurrency),
        )

    def close(self) -> None:
        """Give the connections back."""
        self._http.close()

    @property
    def notes(self) -> tuple[str, ...]:
        """What was worth a warning so far, each once."""
        with self._lock:
            return tuple(self._notes)

    @property
    def rejections(self) -> tuple[Rejection, ...]:
        """Samples left out so far, by reason."""
        with self._lock:
            return self._tally.rejections()

    def ask(self, path: str, form: Form, *, post: bool = True) -> tuple[Answer, Mapping[str, str]]:
        """The answer to ``form`` at ``path`` (below the address), and its headers.

        Raises:
            Refused: the server will not answer this; asking again would not help.
            Transient: it could not, however often it was asked.
        """
        attempt = 0
        while isinstance(found := self._once(path, form, post=post), Again):
            patience = self._retries if self._answered else min(self._retries, _AT_FIRST)
            if attempt >= patience or (found.pause or 0.0) > LONGEST_PAUSE_SECONDS:
                raise Transient(self._given_up(found, attempt + 1))
            with self._lock:
                share = self._jitter.random()
            self._sleep(pause(attempt, share, found.pause))
            attempt += 1
        self._collect(found[0])
        return found

    def _given_up(self, found: Again, tries: int) -> str:
        tried = "once" if tries == 1 else f"{tries} times"
        asked = "" if found.pause is None else f"It asks for a pause of {found.pause:.0f} s"
        trouble = f"the metrics server {self._where} could not answer, asked {tried}: {found.why}"
        remedy = "" if self._answered else found.remedy
        return self._credentials.masked(sentences(trouble, asked, remedy))

    def _once(self, path: str, form: Form, *, post: bool) -> tuple[Answer, Mapping[str, str]] | Again:
        try:
            response = self._sent(path, form, post=post)
        except httpx.TimeoutException as error:
            return Again(f"no answer in time ({type(error).__name__})", remedy=_REACH)
        except (httpx.TransportError, httpx.DecodingError) as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                limit = "its certificate is signed by nobody trusted here"
                raise Refused("prometheus.url", self._where, limit, "Set prometheus.ca_file.") from error
            return Again(_in_words(error), remedy=_REACH)
        except (httpx.InvalidURL, UnicodeEncodeError) as error:
            raise Refused("prometheus", None, "the request cannot be written", "Check address and query.") from error
        if response.status_code in RETRIED:
            why = f"HTTP {response.status_code} {said(response.content)}".rstrip()
            return Again(why, asked_pause(response.headers))
        if response.status_code != httpx.codes.OK:
            raise self._refused(response, form)
        return self._read(response, form)

    def _sent(self, path: str, form: Form, *, post: bool) -> httpx.Response:
        """By POST, whose body may be long; by GET once the server has said that it takes no POST."""
        if post and not self._get_only:
            response = self._http.post(path, data=form)
            if response.status_code != _NOT_ALLOWED:
                return response
            self._get_only = True
        return self._http.get(path, params=form)

    def _refused(self, response: httpx.Response, form: Form) -> AdvisorError:
        query = form.get("query")
        body = self._credentials.masked(response.text).encode()
        return refusal(response.status_code, response.headers, body, query if isinstance(query, str) else None)

    def _failed(self, error: Failed, response: httpx.Response, form: Form) -> Again:
        """The error of an answer that says itself that it is none, though it came with success."""
        if error.may_pass:
            return Again(f"it said: {error}")
        raise self._refused(response, form) from error

    def _read(self, response: httpx.Response, form: Form) -> tuple[Answer, Mapping[str, str]] | Again:
        try:
            answer = parse(response.content)
        except Failed as error:
            return self._failed(error, response, form)
        except Malformed as error:
            # What begins like an answer and does not end like one was cut off on the way.
            if response.content[:1] == b"{" and response.content.rstrip()[-1:] != b"}":
                return Again(f"its answer broke off after {len(response.content)} bytes")
            body = self._credentials.masked(response.text).encode()
            raise no_api(response.headers.get("content-type", ""), body, str(error)) from error
        if answer.partial:
            return Again("its answer is partial: some of its storage is out")
        return answer, response.headers

    def _collect(self, answer: Answer) -> None:
        with self._lock:
            self._answered = True
            self._notes.update(dict.fromkeys(map(self._credentials.masked, answer.notes)))
            for one in answer.rejections:
                self._tally.add(one.reason, one.example, one.count)
