"""The model registry: versions with a card, and which one is champion. Written by training, read online.

Kept in MLflow (SQLite and a local folder by default, any MLflow server by URI). An artefact is a
folder of LightGBM text models and JSON; nothing is ever pickled, so loading runs no code.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit
from urllib.request import url2pathname

import structlog
from sqlalchemy.exc import SQLAlchemyError

from advisor.domain.units import utc
from advisor.errors import AdvisorError, Refused, Transient

# Read by MLflow at import: a cluster tool reports nothing about its user to anyone.
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")

from mlflow import MlflowClient
from mlflow.artifacts import download_artifacts
from mlflow.entities.model_registry import ModelVersion
from mlflow.exceptions import MlflowException

__all__ = ["CHALLENGER", "CHAMPION", "DEMAND", "DURATIONS", "ModelCard", "ModelRegistry", "Registered"]

DURATIONS = "durations"
"""Name of the duration model."""
DEMAND = "demand"
"""Name of the demand model."""
CHAMPION = "champion"
"""Alias of the version that is served."""
CHALLENGER = "challenger"
"""Alias of the newest version that is not served."""

_log = structlog.get_logger(__name__)

_CARD = "card.json"
_EXPERIMENT = "gpu-slice-advisor"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCard:
    """What a version was made from and how it measured before it was ever served.

    ``measures`` are figures of the held-out replay (baseline beside model), ``reasons`` why the
    promotion gate decided as it did, ``fitted_until`` the last moment of history it has seen.
    """

    name: str
    made_at: datetime
    data_digest: str
    rows: int
    fitted_until: datetime
    seed: int
    versions: dict[str, str]
    measures: dict[str, float] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    synthetic: bool = False

    def to_json(self) -> dict[str, Any]:
        """As written beside the model."""
        document = asdict(self)
        document["made_at"] = utc(self.made_at, "made_at").isoformat()
        document["fitted_until"] = utc(self.fitted_until, "fitted_until").isoformat()
        return document

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        """Back from what :meth:`to_json` wrote."""
        moments = {key: datetime.fromisoformat(document[key]) for key in ("made_at", "fitted_until")}
        return cls(**{**document, **moments, "reasons": tuple(document["reasons"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """One version: its card, the aliases it holds and the local folder of its artefact."""

    name: str
    version: str
    aliases: tuple[str, ...]
    card: ModelCard
    folder: Path


class ModelRegistry:
    """Versions of the models by name. Every method may raise Transient: the registry cannot be reached."""

    def __init__(self, client: MlflowClient, artifact_root: str) -> None:
        """Use :meth:`open` instead."""
        self._client = client
        self._artifact_root = artifact_root

    @classmethod
    def open(cls, tracking_uri: str, artifact_root: str) -> Self:
        """Open, or make, the registry at an MLflow ``tracking_uri``.

        Raises:
            Transient: it cannot be reached or made.
        """
        with _translated(tracking_uri):
            if tracking_uri.startswith("sqlite:///"):
                Path(tracking_uri.removeprefix("sqlite:///")).parent.mkdir(parents=True, exist_ok=True)
            return cls(MlflowClient(tracking_uri=tracking_uri, registry_uri=tracking_uri), artifact_root)

    def register(self, folder: Path, card: ModelCard) -> str:
        """Store the artefact of ``folder`` with its card as a new version, made challenger; the version's name.

        The version appears only when all of its files are stored, so a killed call leaves no half model.
        """
        (folder / _CARD).write_text(json.dumps(card.to_json(), indent=2, sort_keys=True), encoding="utf-8")
        with _translated(card.name):
            run = self._client.create_run(self._experiment(), run_name=f"{card.name} {card.made_at:%Y-%m-%d %H:%M}")
            for measure, value in card.measures.items():
                self._client.log_metric(run.info.run_id, measure, value)
            for key in ("data_digest", "rows", "seed", "synthetic"):
                self._client.log_param(run.info.run_id, key, getattr(card, key))
            self._client.log_artifacts(run.info.run_id, str(folder), card.name)
            self._client.set_terminated(run.info.run_id)
            self._ensure_named(card.name)
            source = f"{run.info.artifact_uri}/{card.name}"
            version = str(self._client.create_model_version(card.name, source, run.info.run_id).version)
            self._client.set_registered_model_alias(card.name, CHALLENGER, version)
        return version

    def discard_unfinished(self) -> int:
        """Remove what killed registrations left before their versions appeared; how many there were.

        Only files of a local folder are removed. To be called only by who alone registers: a registration
        under way elsewhere would be taken for one that was killed.
        """
        with _translated("unfinished registrations"):
            found = self._client.search_runs([self._experiment()], "attributes.status = 'RUNNING'")
            for run in found:
                left = urlsplit(str(run.info.artifact_uri))
                if left.scheme == "file":
                    shutil.rmtree(url2pathname(left.path), ignore_errors=True)
                self._client.set_terminated(run.info.run_id, "KILLED")
        return len(found)

    def promote(self, name: str, version: str) -> None:
        """Make ``version`` the champion, and challenger no longer.

        Raises:
            Refused: there is no such version.
            Transient: the registry did not keep the promotion.
        """
        self.load(name, version)
        with _translated(name):
            self._client.set_registered_model_alias(name, CHAMPION, version)
            if self._alias_version(name, CHALLENGER) == version:
                self._client.delete_registered_model_alias(name, CHALLENGER)
            kept = self._alias_version(name, CHAMPION)
        if kept != version:
            raise Transient(f"the registry answers champion {kept} for {name} after {version} was promoted; try again")

    def demote(self, name: str) -> None:
        """Let no version be champion: baselines are served until the next promotion."""
        with _translated(name):
            if self._alias_version(name, CHAMPION) is not None:
                self._client.delete_registered_model_alias(name, CHAMPION)

    def champion(self, name: str) -> Registered | None:
        """The version that is to be served, None if there is none."""
        return self.holder(name, CHAMPION)

    def champion_version(self, name: str) -> str | None:
        """The version that is to be served, without fetching its artefact."""
        with _translated(name):
            return self._alias_version(name, CHAMPION)

    def challenger(self, name: str) -> Registered | None:
        """The newest version that is not served, None if there is none."""
        return self.holder(name, CHALLENGER)

    def holder(self, name: str, alias: str) -> Registered | None:
        """The version that holds ``alias``, None if none does."""
        with _translated(name):
            version = self._alias_version(name, alias)
        return None if version is None else self.load(name, version)

    def load(self, name: str, version: str) -> Registered:
        """That version, its artefact in a local folder.

        Raises:
            Refused: there is no such version.
        """
        for known in self._known(name):
            if str(known.version) == version:
                return self._registered(known)
        raise Refused("version", version, f"the registry has no such version of {name}", "List them: gsa models list.")

    def versions(self, name: str) -> tuple[Registered, ...]:
        """Every version whose artefact can be read, newest first; the others are logged and passed over."""
        found = []
        for known in self._known(name):
            try:
                found.append(self._registered(known))
            except AdvisorError as error:
                _log.warning("version_passed_over", name=name, version=str(known.version), reason=str(error))
        return tuple(found)

    def listing(self, name: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Every version with the aliases it holds, newest first, without fetching any artefact."""
        known = self._known(name)
        with _translated(name):
            held = self._aliases(name)
        return tuple((version, _held_by(version, held)) for version in (str(one.version) for one in known))

    def _experiment(self) -> str:
        found = self._client.get_experiment_by_name(_EXPERIMENT)
        if found is not None:
            return str(found.experiment_id)
        return str(self._client.create_experiment(_EXPERIMENT, artifact_location=self._artifact_root))

    def _ensure_named(self, name: str) -> None:
        if not self._client.search_registered_models(f"name='{name}'"):
            self._client.create_registered_model(name)

    def _known(self, name: str) -> list[ModelVersion]:
        with _translated(name):
            known = list(self._client.search_model_versions(f"name='{name}'"))
        return sorted(known, key=lambda v: int(v.version), reverse=True)

    def _aliases(self, name: str) -> dict[str, str]:
        found = self._client.search_registered_models(f"name='{name}'")
        return {alias: str(version) for alias, version in dict(found[0].aliases).items()} if found else {}

    def _alias_version(self, name: str, alias: str) -> str | None:
        return self._aliases(name).get(alias)

    def _registered(self, known: ModelVersion) -> Registered:
        name, version = str(known.name), str(known.version)
        with _translated(name):
            folder = Path(download_artifacts(artifact_uri=known.source, tracking_uri=self._client.tracking_uri))
            aliases = _held_by(version, self._aliases(name))
            card = _card_in(folder)
        return Registered(name=name, version=version, aliases=aliases, card=replace(card, name=name), folder=folder)


def _held_by(version: str, aliases: dict[str, str]) -> tuple[str, ...]:
    return tuple(alias for alias in (CHAMPION, CHALLENGER) if aliases.get(alias) == version)


def _card_in(folder: Path) -> ModelCard:
    try:
        return ModelCard.from_json(json.loads((folder / _CARD).read_text(encoding="utf-8")))
    except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        limit = f"it is no model card ({type(error).__name__}: {error})"
        raise Refused("model card", str(folder / _CARD), limit, "Train again, or restore the folder.") from error


@contextmanager
def _translated(what: str) -> Iterator[None]:
    """Errors of MLflow, its database and its files become Transient, chained."""
    try:
        yield
    except (MlflowException, SQLAlchemyError, OSError, ValueError) as error:
        raise Transient(f"the model registry could not serve {what}: {error}; check storage.tracking_uri") from error
