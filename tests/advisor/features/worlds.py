"""Feature states of worlds small enough to work out by hand."""

from datetime import datetime, timedelta

from advisor.domain.jobs import Job
from advisor.features.duration import DurationFeatures
from advisor.features.replay import EventKind, events_of
from tests.builders import NOON

LATER = NOON + timedelta(hours=1)


def after(*jobs: Job, until: datetime = LATER) -> DurationFeatures:
    """The state after everything that happened to ``jobs`` up to ``until``."""
    features = DurationFeatures()
    for event in events_of(jobs, until):
        if event.kind is EventKind.SUBMITTED:
            features.submitted(event.job)
        elif event.kind is EventKind.ENDED:
            features.ended(event.job, event.moment)
        else:
            features.started(event.job)
    return features
