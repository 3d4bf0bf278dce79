from fractions import Fraction

import pytest

from advisor.cluster.quantities import parse_gpus, parse_quantity
from advisor.errors import Refused


@pytest.mark.parametrize(
    "text, number",
    [
        ("500m", Fraction(1, 2)),
        ("1Ki", 1024),
        ("129e6", 129_000_000),
        ("128974848000m", 128_974_848),
        ("12E", 12 * 10**18),
        ("1e1", 10),
        ("1E1", 10),
        ("0.5", Fraction(1, 2)),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("-3", -3),
        ("+3", 3),
        ("2Ei", 2 * 1024**6),
        ("1n", Fraction(1, 10**9)),
        (7, 7),
    ],
)
def test_a_quantity_means_what_the_api_server_takes_it_for(text, number):
    """Field report A22: an exponent is no exa, and exa is no exponent."""
    assert parse_quantity(text, "memory") == number


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "nan",
        "inf",
        "1_000",
        "1K",
        "1 Gi",
        "1ki",
        "e6",
        "1e",
        "--1",
        "1e9999",
        "٣",
        "1" * 65,
        "1\n",
        None,
        1.5,
        True,
    ],
)
def test_what_the_api_server_refuses_is_refused(bad):
    """Field report A22: the client library takes several of these."""
    with pytest.raises(Refused, match="memory"):
        parse_quantity(bad, "memory")


@pytest.mark.parametrize("text, gpus", [("8", 8), ("8000m", 8), ("1e1", 10), ("0", 0), (4, 4)])
def test_whole_gpus_are_counted(text, gpus):
    assert parse_gpus(text, "gpus") == gpus


@pytest.mark.parametrize("bad", ["500m", "1.5", "-1", "1500m", "1n"])
def test_a_fraction_of_a_gpu_is_refused(bad):
    """Field report A22: a fractional GPU request cannot be."""
    with pytest.raises(Refused, match="whole"):
        parse_gpus(bad, "gpus")
