"""What the registry knows of its versions, as the API and the page of the models tell it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import structlog

from advisor.errors import AdvisorError
from advisor.forecast.registry import DEMAND, DURATIONS, ModelCard, ModelRegistry
from dashboards.data import Compared, ModelVersion, PoolSkill, RegisteredModel
from serving.api.service import ModelSummary

__all__ = ["ModelShelf"]

_NEWEST = 8
"""So many versions of a model are told at least; older ones only while they hold an alias."""

_SKILL = "skill."
_SINCE = "_since_"

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Shelved:
    """One version with the aliases that it holds now."""

    name: str
    version: str
    aliases: tuple[str, ...]
    card: ModelCard


class ModelShelf:
    """Versions with their cards; a card is fetched once, since only the aliases of a version ever change.

    Every method may raise Transient: the registry cannot be reached.
    """

    def __init__(self, registry: ModelRegistry) -> None:
        """Read ``registry``; nothing is fetched before it is asked for."""
        self._registry = registry
        self._cards: dict[tuple[str, str], ModelCard] = {}

    def summaries(self) -> tuple[ModelSummary, ...]:
        """Every version as the API tells it, newest first."""
        return tuple(
            ModelSummary(
                name=one.name,
                version=one.version,
                aliases=one.aliases,
                created=one.card.made_at,
                data_digest=one.card.data_digest,
                measures=one.card.measures,
                reasons=one.card.reasons,
                synthetic=one.card.synthetic,
            )
            for name in (DURATIONS, DEMAND)
            for one in self._shelved(name, self._registry.listing(name))
        )

    def registered(self) -> tuple[RegisteredModel, ...]:
        """Each model with its newest versions, those that hold an alias, and how many there are in all."""
        found = []
        for name in (DURATIONS, DEMAND):
            listed = self._registry.listing(name)
            told = [one for place, one in enumerate(listed) if place < _NEWEST or one[1]]
            versions = tuple(_version(one) for one in self._shelved(name, told))
            found.append(RegisteredModel(name=name, versions=versions, in_all=len(listed)))
        return tuple(found)

    def _shelved(self, name: str, listed: Iterable[tuple[str, tuple[str, ...]]]) -> Iterator[_Shelved]:
        for version, aliases in listed:
            card = self._card(name, version)
            if card is not None:
                yield _Shelved(name, version, aliases, card)

    def _card(self, name: str, version: str) -> ModelCard | None:
        """None where the artefact cannot be read: it is passed over, with the reason in the log."""
        known = self._cards.get((name, version))
        if known is None:
            try:
                known = self._cards[name, version] = self._registry.load(name, version).card
            except AdvisorError as error:
                _log.warning("version_passed_over", name=name, version=version, reason=str(error))
        return known


def _version(one: _Shelved) -> ModelVersion:
    card = one.card
    return ModelVersion(
        version=one.version,
        aliases=one.aliases,
        made_at=card.made_at,
        fitted_until=card.fitted_until,
        rows=card.rows,
        data_digest=card.data_digest,
        synthetic=card.synthetic,
        compared=_compared(card.measures),
        skills=_skills(card.measures),
        reasons=card.reasons,
    )


def _compared(measures: Mapping[str, float]) -> tuple[Compared, ...]:
    """The model beside each rival, as ``training.quality`` names them: ``<predictor>.<measure>``."""
    found = []
    for named, theirs in measures.items():
        rival, _, measure = named.rpartition(".")
        if named.startswith(_SKILL) or rival == "model" or _SINCE in rival:
            continue
        ours = measures.get(f"model{_SINCE}{rival}.{measure}", measures.get(f"model.{measure}"))
        if ours is not None:
            found.append(Compared(measure=measure, model=ours, rival=rival, of_rival=theirs))
    # The floor before the champion of the time.
    return tuple(sorted(found, key=lambda one: (one.rival != "median_of_5", one.rival, one.measure)))


def _skills(measures: Mapping[str, float]) -> tuple[PoolSkill, ...]:
    """The skills of a demand model, as ``training.pipeline`` names them: ``skill.<pool>.<minutes>``."""
    found = []
    for named, skill in measures.items():
        pool, _, minutes = named.removeprefix(_SKILL).rpartition(".")
        if named.startswith(_SKILL) and minutes.isdigit():
            found.append(PoolSkill(pool=pool, minutes=int(minutes), skill=skill))
    return tuple(sorted(found, key=lambda one: (one.pool, one.minutes)))
