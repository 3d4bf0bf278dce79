"""What GPU time, waiting and switching cost: plain arithmetic, and the only file that multiplies by a price.

Amounts are in the user's currency, times in minutes, GPUs are physical whatever the sharing factor.
"""

from __future__ import annotations

from dataclasses import dataclass

from advisor.domain.plans import Money
from advisor.domain.units import finite, positive
from advisor.errors import Refused

__all__ = [
    "Prices",
    "break_even_minutes",
    "cold_start_cost",
    "gpu_cost",
    "idle_cost",
    "switch_cost",
    "waiting_cost",
    "waiting_ratio",
]

_MINUTES_PER_HOUR = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What one paid GPU-hour and one waiting GPU-minute cost, and whether a booting node is paid for.

    The defaults are round figures to be replaced. A GPU-hour at 2.50 USD is the order of a data-centre
    GPU on demand. A waiting GPU-minute at 0.25 USD is worth 6 paid ones, 15 USD an hour: part of the time of
    whoever waits, since nobody watches most tasks start. Booting is taken as billed, since a machine
    that runs but is not ready yet costs what it costs later; only the minutes before it runs are free. On
    hardware of one's own the hourly depreciation is the price.
    """

    per_gpu_hour: float = 2.5
    per_waiting_gpu_minute: float = 0.25
    currency: str = "USD"
    boot_billed: bool = True

    def __post_init__(self) -> None:
        """Check both prices.

        Raises:
            Refused: a GPU-hour that is free, or a negative price of waiting.
        """
        positive(self.per_gpu_hour, "per_gpu_hour", f"{self.currency} per GPU-hour")
        if finite(self.per_waiting_gpu_minute, "per_waiting_gpu_minute") < 0:
            raise Refused(
                "per_waiting_gpu_minute",
                self.per_waiting_gpu_minute,
                "waiting costs 0 or more",
                "Use 0 where nobody minds waiting.",
            )

    @classmethod
    def of(cls, money: Money, *, boot_billed: bool = True) -> Prices:
        """The prices of a user's ``money``."""
        return cls(
            per_gpu_hour=money.per_gpu_hour,
            per_waiting_gpu_minute=money.per_waiting_gpu_minute,
            currency=money.currency,
            boot_billed=boot_billed,
        )

    @property
    def money(self) -> Money:
        """The two prices as they are shown."""
        return Money(self.per_gpu_hour, self.per_waiting_gpu_minute, self.currency)


def gpu_cost(prices: Prices, gpu_minutes: float) -> float:
    """What ``gpu_minutes`` of paid GPU time cost.

    >>> gpu_cost(Prices(per_gpu_hour=3.0), 120)
    6.0
    """
    return gpu_minutes * prices.per_gpu_hour / _MINUTES_PER_HOUR


def waiting_cost(prices: Prices, gpu_minutes: float) -> float:
    """What ``gpu_minutes`` of waiting cost: one task wanting 8 GPUs for 2 min waits 16."""
    return gpu_minutes * prices.per_waiting_gpu_minute


def idle_cost(prices: Prices, node_gpus: int, minutes: float) -> float:
    """What one node of ``node_gpus`` costs while it stands idle for ``minutes``."""
    return gpu_cost(prices, node_gpus * minutes)


def switch_cost(prices: Prices, gpus: float, switch_minutes: float) -> float:
    """What stopping and resuming one task costs: its GPUs do nothing useful for the switch."""
    return gpu_cost(prices, gpus * switch_minutes)


def cold_start_cost(prices: Prices, gpus: float, start_latency_minutes: float) -> float:
    """What it costs when work for ``gpus`` arrives and nothing is warm: the boot, where billed, and the wait."""
    boot = gpu_cost(prices, gpus * start_latency_minutes) if prices.boot_billed else 0.0
    return boot + waiting_cost(prices, gpus * start_latency_minutes)


def waiting_ratio(prices: Prices) -> float:
    """Paid GPU-minutes that one waiting GPU-minute is worth.

    >>> waiting_ratio(Prices(per_gpu_hour=3.0, per_waiting_gpu_minute=0.8))
    16.0
    """
    return prices.per_waiting_gpu_minute * _MINUTES_PER_HOUR / prices.per_gpu_hour


def break_even_minutes(prices: Prices, start_latency_minutes: float, *, weight: float = 1.0) -> float:
    """Idle minutes of a node that cost as much as one cold start: the ski-rental point.

    Keeping an idle node exactly this long never costs more than twice what perfect foresight would.
    ``weight`` scales the price of waiting, where only a part of it is believed.
    """
    boot = start_latency_minutes if prices.boot_billed else 0.0
    return boot + weight * waiting_ratio(prices) * start_latency_minutes
