"""Numbers as a person reads them: always with a unit, unknown as a dash, never a false digit."""

from __future__ import annotations

import re
from datetime import datetime

from advisor.domain.units import shown_duration

__all__ = [
    "FORMATS",
    "UNKNOWN",
    "age",
    "count",
    "day",
    "gpus",
    "lost",
    "minutes",
    "moment",
    "money",
    "percent",
    "seconds",
    "short",
    "signed",
    "times",
    "words",
]

UNKNOWN = "\u2013"
_SHORT = 24


def minutes(value: float | None) -> str:
    """Minutes, or hours from two hours on: ``15 min``, ``12.7 min``, ``4 h``."""
    if value is None:
        return UNKNOWN
    return f"{value:.3g} min" if value < 120 else f"{value / 60:.3g} h"


def seconds(value: float | None) -> str:
    """Seconds in the unit that fits: ``45 s``, ``12.5 min``, ``3.2 h``, ``4 d``."""
    return UNKNOWN if value is None else shown_duration(value)


def gpus(value: float | None) -> str:
    """GPUs: ``1 GPU``, ``148 GPUs``, ``0.25 GPU``."""
    if value is None:
        return UNKNOWN
    text = f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"
    return f"{text} GPU" if value <= 1 and value > 0 else f"{text} GPUs"


def count(value: float | None) -> str:
    """A plain number with thousands separated."""
    return UNKNOWN if value is None else f"{value:,.0f}"


def percent(value: float | None) -> str:
    """A share of one as per cent: ``18.5 %``, ``41 %``."""
    if value is None:
        return UNKNOWN
    scaled = value * 100
    return f"{scaled:.0f} %" if abs(scaled) >= 20 or scaled == int(scaled) else f"{scaled:.1f} %"


def times(value: float | None) -> str:
    """A multiple, after a sign of multiplication: 1.4, 0.05, 250."""
    return UNKNOWN if value is None else f"\u00d7{value:,.0f}" if value >= 99.5 else f"\u00d7{value:.2g}"


def lost(value: float | None) -> str:
    """GPU time lost per useful one, to the tenth of a per cent that compared lengths differ by: ``22.2 %``."""
    return UNKNOWN if value is None else f"{value * 100:.1f} %"


def signed(value: float | None) -> str:
    """A change as per cent with its sign: ``+4.0 %``, ``-21 %``, ``±0 %``."""
    if value is None:
        return UNKNOWN
    if abs(value) < 0.0005:
        return "±0 %"
    return ("+" if value > 0 else "\u2212") + percent(abs(value))


def money(value: float | None, currency: str | None) -> str:
    """An amount: ``2.50 USD``."""
    return UNKNOWN if value is None else f"{value:,.2f} {currency or ''}".rstrip()


def moment(value: datetime | None) -> str:
    """A time in UTC: ``2 Mar 2026, 12:00 UTC``."""
    return UNKNOWN if value is None else f"{value.day} {value:%b %Y, %H:%M} UTC"


def day(value: datetime) -> str:
    """A day: ``2 Mar 2026``."""
    return f"{value.day} {value:%b %Y}"


def age(value: float | None) -> str:
    """How long ago: ``just now``, ``12 min ago``."""
    if value is None:
        return UNKNOWN
    return "just now" if value < 60 else f"{shown_duration(value)} ago"


def short(text: str) -> str:
    """A long identity by its beginning and its end: ``0f6c1d2e-7a4b…9c41d2e0``; whole up to 24 characters."""
    return text if len(text) <= _SHORT else f"{text[:13]}\u2026{text[-8:]}"


def words(class_name: str) -> str:
    """The name of a context class as a heading: ``DemandView`` is ``Demand``."""
    parts = [part for part in re.findall("[A-Z][a-z]*", class_name) if part not in {"Page", "View", "Row", "Line"}]
    return " ".join(parts).capitalize()


FORMATS = {
    "minutes": minutes,
    "seconds": seconds,
    "short": short,
    "gpus": gpus,
    "count": count,
    "percent": percent,
    "lost": lost,
    "signed": signed,
    "times": times,
    "money": money,
    "moment": moment,
    "day": day,
    "age": age,
    "words": words,
}
"""The same under the names by which templates call them."""
