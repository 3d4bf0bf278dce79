"""The body that answers how long jobs may run: quantiles, what remains, how they end, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import Field

from advisor.domain.explanations import DurationExplanation
from advisor.domain.forecasts import DurationDistribution, OutcomeChances
from advisor.errors import Defect
from serving.advice_json import QUANTILE_LEVELS
from serving.api.fields import Answer, AsOf, Reasons, Synthetic, UtcTime, Version
from serving.api.service import DurationAnswer

__all__ = ["DurationsAnswer", "Quantiles"]


class Quantiles(Answer):
    """Seconds by which the job has ended with the probability in the field's name; they never cross."""

    q10: float = Field(alias="0.1", gt=0)
    q50: float = Field(alias="0.5", gt=0)
    q80: float = Field(alias="0.8", gt=0)
    q90: float = Field(alias="0.9", gt=0)
    q95: float = Field(alias="0.95", gt=0)

    @classmethod
    def of(cls, durations: DurationDistribution) -> Self:
        """The answered levels of a distribution."""
        q10, q50, q80, q90, q95 = (durations.quantile(level) for level in QUANTILE_LEVELS)
        return cls(q10=q10, q50=q50, q80=q80, q90=q90, q95=q95)


class Remaining(Answer):
    """What is left of a job that already runs."""

    quantiles_seconds: Quantiles
    mean_seconds: float = Field(gt=0, description="Expected seconds still to go.")
    median_seconds: float = Field(gt=0, description="Seconds to go with even odds of being exceeded.")

    @classmethod
    def of(cls, remaining: DurationDistribution) -> Self:
        """The same of a distribution of remaining seconds."""
        quantiles = Quantiles.of(remaining)
        return cls(quantiles_seconds=quantiles, mean_seconds=remaining.mean, median_seconds=quantiles.q50)


class Outcomes(Answer):
    """How a job will end, as probabilities that sum to 1; of one that runs, given the age it has reached."""

    completed: float = Field(ge=0, le=1, description="Chance that it completes.")
    failed: float = Field(ge=0, le=1, description="Chance that it fails.")
    cancelled: float = Field(ge=0, le=1, description="Chance that somebody cancels it.")

    @classmethod
    def of(cls, chances: OutcomeChances) -> Self:
        """The same of the domain's value."""
        return cls(completed=chances.completed, failed=chances.failed, cancelled=chances.cancelled)


class Effect(Answer):
    """What one feature did to a prediction."""

    name: str = Field(description="Name of the feature.")
    meaning: str = Field(description="What it says.")
    unit: str = Field(description="Unit of its value.")
    value: float | None = Field(description="Its value for this job; null where unknown.")
    direction: Literal["longer", "shorter"] = Field(description="Which way it pushed the prediction.")
    share: float = Field(ge=0, le=1, description="Its part of everything that pushed this prediction.")


class Explanation(Answer):
    """Why a prediction is what it is."""

    key: str = Field(description="The most specific history in which a job like this has ended.")
    key_count: int = Field(ge=0, description="Ended jobs in that history.")
    last_end: UtcTime | None = Field(description="When the latest of them ended; null where none has.")
    weights: dict[str, Annotated[float, Field(ge=0, le=1)]] = Field(
        description="What each part counts in the answer: forest, hazard, and the median of five."
    )
    effects: list[Effect] = Field(description="The features that moved the answer most, strongest first.")
    narrower: list[str] = Field(description="What would make the answer sharper.")

    @classmethod
    def of(cls, why: DurationExplanation) -> Self:
        """The same of the domain's value."""
        effects = [
            Effect(
                name=effect.name,
                meaning=effect.meaning,
                unit=effect.unit,
                value=effect.value,
                direction="longer" if effect.longer else "shorter",
                share=effect.share,
            )
            for effect in why.effects
        ]
        return cls(
            key=why.key,
            key_count=why.key_count,
            last_end=why.last_end,
            weights=why.weights,
            effects=effects,
            narrower=list(why.narrower),
        )


class Prediction(Answer):
    """How long one job may run, from start to end."""

    id: str
    quantiles_seconds: Quantiles
    mean_seconds: float = Field(gt=0, description="Expected seconds; long tails pull it far above the median.")
    median_seconds: float = Field(gt=0, description="Seconds with even odds of being exceeded.")
    typical_seconds: float = Field(
        gt=0, description="Seconds p whose window from p/2 to 2p holds the most probability."
    )
    elapsed_seconds: float | None = Field(description="Seconds it has run, as asked; null where not asked.")
    remaining: Remaining | None = Field(description="What is left; null where no elapsed time was given.")
    served: str = Field(description="Who answers: model, or the name of a baseline.")
    model_version: Version
    key: str = Field(description="The history that carried the prediction, for instance user+gpus.")
    key_count: int = Field(ge=0, description="Ended jobs in that history.")
    reasons: Reasons
    outcomes: Outcomes | None = Field(description="How it will end; null where a baseline answers.")
    explanation: Explanation | None = Field(description="Why; null where it was not asked for.")

    @classmethod
    def of(cls, answer: DurationAnswer) -> Self:
        """One answer of the service."""
        forecast, elapsed = answer.forecast, answer.elapsed_seconds
        durations = forecast.distribution
        quantiles = Quantiles.of(durations)
        return cls(
            id=answer.id,
            quantiles_seconds=quantiles,
            mean_seconds=durations.mean,
            median_seconds=quantiles.q50,
            typical_seconds=durations.typical,
            elapsed_seconds=elapsed,
            remaining=None if elapsed is None else Remaining.of(durations.given_age(elapsed)),
            served=forecast.served,
            model_version=forecast.model_version,
            key=forecast.key,
            key_count=forecast.key_count,
            reasons=list(forecast.reasons),
            outcomes=None if forecast.outcomes is None else Outcomes.of(forecast.outcomes),
            explanation=None if answer.explanation is None else Explanation.of(answer.explanation),
        )


class DurationsAnswer(Answer):
    """One prediction per job, in the order asked, all from one model version."""

    as_of: AsOf
    synthetic: Synthetic
    model_version: Version
    predictions: list[Prediction]

    @classmethod
    def of(cls, synthetic: bool, answers: Sequence[DurationAnswer]) -> Self:
        """The answers of one call to the service.

        Raises:
            Defect: they come from more than one model version or moment.
        """
        moments = {answer.as_of for answer in answers}
        if len(moments) != 1:
            raise Defect(f"one answer is of {len(moments)} moments")
        versions = {answer.forecast.model_version for answer in answers} - {None}
        if len(versions) > 1:
            raise Defect(f"one answer mixes the model versions {sorted(map(str, versions))}")
        predictions = [Prediction.of(answer) for answer in answers]
        version = next(iter(versions), None)
        return cls(as_of=moments.pop(), synthetic=synthetic, model_version=version, predictions=predictions)
