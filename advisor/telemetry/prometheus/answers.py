"""What a server answered, as series: parsed one series at a time, so that a long answer never becomes many objects."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advisor.domain.ingest import Rejection
from advisor.domain.units import shown_moment
from advisor.telemetry.prometheus.samples import Series
from advisor.telemetry.tally import RejectionTally

__all__ = ["BROKEN_PAIR", "HISTOGRAM", "NOT_A_NUMBER", "OUT_OF_ORDER", "Answer", "Failed", "Malformed", "parse"]

NOT_A_NUMBER = "value_is_no_number"
BROKEN_PAIR = "sample_is_no_pair"
HISTOGRAM = "native_histogram"
OUT_OF_ORDER = "sample_out_of_order"

Floats = NDArray[np.float64]


class Malformed(Exception):
    """The body is not what the Prometheus HTTP API answers; the text says what it is instead."""


class Failed(Exception):
    """The answer says itself that it is an error; the text is the server's, ``may_pass`` whether to ask again."""

    def __init__(self, kind: str, text: str) -> None:
        """``kind`` is the server's ``errorType``, ``text`` its ``error``."""
        self.may_pass = kind in _PASSING
        super().__init__(text)


_PASSING = frozenset({"timeout", "canceled", "unavailable", "internal", "too_many_requests"})
"""Kinds of error after which the same question may be answered."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A successful answer: its ``data``, the samples left out of it, and what the server said of it.

    ``notes`` are its warnings and infos; ``partial`` is true where it says itself that part is missing.
    """

    data: Any
    rejections: tuple[Rejection, ...]
    notes: tuple[str, ...]
    partial: bool

    def series(self) -> list[Series]:
        """The series of a matrix or vector, in the server's order; a scalar is one without labels.

        Raises:
            Malformed: the data is no result of a query, or text.
        """
        kind, result = _field(self.data, "resultType"), _field(self.data, "result")
        if kind == "scalar":
            return [_single({}, result)]
        if kind not in {"matrix", "vector"} or not isinstance(result, list):
            raise Malformed(f"a result of type {kind!r} holds no samples")
        if not all(isinstance(one, Series) for one in result):
            raise Malformed("a series has no labels, or no samples")
        return [one for one in result if one.times.size]

    def texts(self) -> list[str]:
        """A list of label values.

        Raises:
            Malformed: it is no list of texts.
        """
        if not isinstance(self.data, list) or not all(isinstance(one, str) for one in self.data):
            raise Malformed("it is no list of label values")
        return self.data


def parse(body: bytes) -> Answer:
    """The answer in ``body``; a sample that is none is left out and counted.

    Raises:
        Malformed: the body is no JSON, or not an answer of this API.
        Failed: it is an error, as the API words it.
    """
    tally = RejectionTally()
    try:
        # A series becomes arrays as soon as its closing brace is read: the pairs of one are alive at a time.
        whole = json.loads(body, object_hook=lambda found: _as_series(found, tally))
    except (ValueError, RecursionError) as error:
        raise Malformed(f"it is no JSON: {error}") from error
    if _field(whole, "status") == "error":
        raise Failed(
            str(_field(whole, "errorType") or ""), str(_field(whole, "error") or "no more than that it failed")
        )
    if _field(whole, "status") != "success":
        raise Malformed("it is JSON, but no answer of the Prometheus HTTP API")
    return Answer(_field(whole, "data"), tally.rejections(), _notes(whole), whole.get("isPartial") is True)


def _field(found: object, key: str) -> object:
    return found.get(key) if isinstance(found, dict) else None


def _notes(whole: Mapping[str, Any]) -> tuple[str, ...]:
    lists = (whole.get(key) for key in ("warnings", "infos"))
    return tuple(str(note) for found in lists if isinstance(found, list) for note in found)


def _as_series(found: dict[str, Any], tally: RejectionTally) -> dict[str, Any] | Series:
    """The series that ``found`` is, or ``found`` itself. Labels named like its keys hold text, so they are none."""
    labels = found.get("metric")
    if not isinstance(labels, dict) or not found.keys() & {"values", "value", "histograms", "histogram"}:
        return found
    if not all(isinstance(value, str) for value in labels.values()):
        return found
    histograms = found.get("histograms", [found["histogram"]] if "histogram" in found else [])
    if histograms:
        tally.add(HISTOGRAM, str(labels), len(histograms))
    pairs = found.get("values", [found["value"]] if "value" in found else [])
    return Series(labels, *_samples(labels, pairs, tally)) if isinstance(pairs, list) else found


def _single(labels: dict[str, str], pair: object) -> Series:
    times, values = _one_by_one(labels, [pair], RejectionTally())
    if not times.size:
        raise Malformed("a scalar is no pair of time and value")
    return Series(labels, times, values)


def _samples(labels: dict[str, str], pairs: list[Any], tally: RejectionTally) -> tuple[Floats, Floats]:
    """Times and values of ``[[seconds, "text"], ...]``, ascending."""
    times, values = _at_once(pairs) or _one_by_one(labels, pairs, tally)
    if times.size < 2 or bool(np.all(times[1:] > times[:-1])):
        return times, values
    kept = np.unique(times, return_index=True)[1]
    if kept.size < times.size:
        tally.add(OUT_OF_ORDER, str(labels), times.size - kept.size)
    return times[kept], values[kept]


def _at_once(pairs: list[Any]) -> tuple[Floats, Floats] | None:
    """Times and values where every pair is one; None where not.

    Tens of millions of samples come this way: a pass to transpose and one to convert, no Python code for a sample.
    """
    try:
        stamps, texts = zip(*pairs, strict=True) if pairs else ((), ())
        times = np.fromiter(stamps, np.float64, len(stamps))
        values = np.fromiter(map(float, texts), np.float64, len(texts))
    except (TypeError, ValueError, OverflowError):
        return None
    return (times, values) if bool(np.isfinite(times).all()) else None


def _one_by_one(labels: dict[str, str], pairs: list[Any], tally: RejectionTally) -> tuple[Floats, Floats]:
    good: list[tuple[float, float]] = []
    for pair in pairs:
        moment = _moment(pair)
        if moment is None:
            tally.add(BROKEN_PAIR, f"{labels}: {pair}")
            continue
        try:
            good.append((moment, float(pair[1])))
        except (TypeError, ValueError, OverflowError):
            tally.add(NOT_A_NUMBER, f"{labels} at {shown_moment(moment)}: {pair[1]}")
    both = np.array(good, dtype=np.float64).reshape(-1, 2)
    return both[:, 0].copy(), both[:, 1].copy()


def _moment(pair: object) -> float | None:
    """When the sample is of; None where it is no pair of a moment and something."""
    if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], int | float):
        return None
    try:
        return float(pair[0]) if math.isfinite(pair[0]) else None
    except OverflowError:
        return None
