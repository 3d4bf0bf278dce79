"""Counts of GPUs as the API server reads them; the grammar of quantities is the domain's."""

from __future__ import annotations

from advisor.domain.quantities import parse_quantity
from advisor.errors import Refused

__all__ = ["parse_gpus", "parse_quantity"]

_PLAIN = 10


def parse_gpus(value: object, field: str) -> int:
    """A whole number of GPUs, 0 or more: Kubernetes counts extended resources in whole ones.

    Raises:
        Refused: not a quantity, negative, or a fraction of a GPU.
    """
    # Nearly every count is plain digits, and a cluster has very many of them.
    if isinstance(value, str) and len(value) < _PLAIN and value.isascii() and value.isdecimal():
        return int(value)
    number = parse_quantity(value, field)
    if number.denominator != 1 or number < 0:
        raise Refused(
            field, value, "GPUs are whole and not negative", "Ask for whole GPUs; share one by slices of it instead."
        )
    return int(number)
