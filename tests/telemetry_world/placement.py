"""Who gets which slots: first come, first served in each pool, a gang all at once or not at all."""

from __future__ import annotations

from collections.abc import Sequence

from tests.telemetry_world.things import Ask, Node, Slot

__all__ = ["FreeSlots"]


class FreeSlots:
    """The slots nobody holds, by node. Nodes are filled in the order they were added."""

    def __init__(self) -> None:
        """Start without nodes."""
        self._nodes: dict[str, tuple[Node, list[Slot]]] = {}

    def add(self, node: Node) -> None:
        """Take in a node, all of it free."""
        self._nodes[node.name] = (node, [slot for device in node.devices for slot in device.slots])

    def remove(self, node: Node) -> None:
        """Forget a node; what is given back to it later is lost."""
        self._nodes.pop(node.name, None)

    def take(self, pool: str, ask: Ask, pods: int) -> list[tuple[Node, tuple[Slot, ...]]] | None:
        """A node and slots for each of ``pods`` pods of ``ask``, or None (and nothing taken) where they do not fit."""
        found: list[tuple[Node, tuple[Slot, ...]]] = []
        for _ in range(pods):
            one = self._take_one(pool, ask)
            if one is None:
                for node, slots in found:
                    self.give_back(node, slots)
                return None
            found.append(one)
        return found

    def give_back(self, node: Node, slots: Sequence[Slot]) -> None:
        """``slots`` are free again."""
        if node.name in self._nodes:
            free = self._nodes[node.name][1]
            free += slots
            free.sort(key=lambda slot: (slot.uuid, slot.number))

    def _take_one(self, pool: str, ask: Ask) -> tuple[Node, tuple[Slot, ...]] | None:
        for node, free in self._nodes.values():
            if node.pool != pool:
                continue
            chosen = _chosen(ask, free)
            if chosen is not None:
                for slot in chosen:
                    free.remove(slot)
                return node, chosen
        return None


def _chosen(ask: Ask, free: Sequence[Slot]) -> tuple[Slot, ...] | None:
    fitting = [slot for slot in free if slot.unit == ask.unit]
    if not ask.on_one_card:
        return tuple(fitting[: ask.count]) if len(fitting) >= ask.count else None
    by_card: dict[str, list[Slot]] = {}
    for slot in fitting:
        by_card.setdefault(slot.uuid, []).append(slot)
    # The fullest card that still has room, so that whole cards stay whole.
    cards = [slots for slots in by_card.values() if len(slots) >= ask.count]
    return tuple(min(cards, key=len)[: ask.count]) if cards else None
