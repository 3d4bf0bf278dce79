"""Resource quantities as the API server reads them: ``500m``, ``1Ki``, ``129e6``, ``12E``.

The grammar is that of ``resource.Quantity``: an ASCII decimal number, then nothing, an SI suffix
(n u m k M G T P E), a binary suffix (Ki to Ei) or a decimal exponent. ``E`` alone is exa, ``e`` or
``E`` before digits an exponent.
"""

from __future__ import annotations

import re
from fractions import Fraction

from advisor.errors import Refused

__all__ = ["LARGEST_QUANTITY", "parse_quantity"]

_QUANTITY = re.compile(r"([+-]?)([0-9]+\.?[0-9]*|\.[0-9]+)(?:([eE][+-]?[0-9]{1,3})|(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]))?")
_LONGEST = 64
LARGEST_QUANTITY = 2**63 - 1
"""Where the API server caps a larger number."""
_SUFFIX = {
    **{
        suffix: Fraction(10) ** power
        for suffix, power in zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True)
    },
    **{f"{suffix}i": Fraction(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)},
}


def parse_quantity(value: object, field: str) -> Fraction:
    """The exact number meant by a quantity, a string or a whole JSON number.

    >>> parse_quantity("500m", "cpu"), parse_quantity("128974848000m", "memory")
    (Fraction(1, 2), Fraction(128974848, 1))

    Raises:
        Refused: anything the API server would refuse, such as ``nan``, ``1_000`` or ``1K``.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return Fraction(value)
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) and len(value) <= _LONGEST else None
    if match is None:
        raise Refused(
            field,
            value,
            "a quantity is a decimal number and at most one suffix of n u m k M G T P E or Ki to Ei",
            "Write it as 8, 500m, 16Gi or 129e6.",
        )
    sign, digits, exponent, suffix = match.groups()
    number = Fraction(digits + (exponent or "")) * _SUFFIX.get(suffix, Fraction(1))
    return -number if sign == "-" else number
