"""Whether promises were kept: on a job's page, and day by day and week by week for all."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from advisor.domain.promises import KeptPromises
from dashboards.charts import promises_kept
from dashboards.pages import job_page, models_page
from tests.builders import NOON, a_job
from tests.dashboards.worlds import seen
from tests.serving.fake_service import FakePages
from tests.serving.http import an_app, get

DAY = timedelta(days=1)
MIDNIGHT = NOON.replace(hour=0)
"""A Monday."""


def kept(days: int, **more: Any) -> KeptPromises:
    known = {"replayed": False, "ended": 10, "overdue": 0, "within_p50": 5, "within_p90": 9}
    return KeptPromises(begin=MIDNIGHT + days * DAY, **{**known, **more})


def promise_of(seconds: float | None, elapsed: float | None = None):
    """The fake forecast has a P50 and a P90; the job ran for a multiple of them."""
    pages = FakePages()
    job = a_job("job", seconds=seconds, submit=NOON - timedelta(seconds=elapsed or 0.0))
    (view,) = replace(pages, jobs_now=(job,)).jobs(None, 1)
    return job_page(seen(), view).promise


P50 = FakePages().forecast.distribution.median
P90 = FakePages().forecast.distribution.quantile(0.9)


@pytest.mark.parametrize(
    "seconds, elapsed, is_kept, ratio",
    [
        (P90 * 0.99, None, True, P90 * 0.99 / P50),
        (P90 * 1.01, None, False, P90 * 1.01 / P50),
        (None, P90 * 0.99, None, P90 * 0.99 / P50),
        (None, P90 * 1.01, False, P90 * 1.01 / P50),
    ],
    ids=["ended within", "ended beyond", "runs within", "runs beyond"],
)
def test_a_promise_is_kept_within_the_p90_broken_beyond_and_open_while_it_runs(seconds, elapsed, is_kept, ratio):
    promise = promise_of(seconds, elapsed)
    assert promise is not None
    assert promise.kept is is_kept
    assert promise.ratio == pytest.approx(ratio, rel=1e-6)


def test_a_job_that_waits_has_an_open_promise_and_ran_for_nothing():
    view = FakePages().job("vision/train-21")
    assert view is not None
    promise = job_page(seen(), view).promise
    assert promise is not None
    assert (promise.kept, promise.ratio) == (None, None)


def test_a_job_without_a_promise_says_nothing_of_one():
    view = FakePages().job("train-17")
    assert view is not None
    assert job_page(seen(), view).promise is None


def test_weeks_add_up_their_days_and_days_of_which_nothing_is_known_are_left_out():
    unknown = kept(1, ended=0, overdue=0, within_p50=0, within_p90=0)
    days = [kept(-1), kept(0), unknown, kept(6, ended=8, overdue=2, within_p50=1), kept(7)]

    live = models_page(seen(), days, ()).live

    assert live is not None
    assert [row.begin for row in live.weeks] == [MIDNIGHT + 7 * DAY, MIDNIGHT, MIDNIGHT - 7 * DAY]
    week = live.weeks[1]
    assert (week.ended, week.overdue, week.p50_share, week.p90_share) == (18, 2, 6 / 20, 18 / 20)
    assert [row.begin for row in live.days] == [MIDNIGHT + days * DAY for days in (7, 6, 0, -1)]


def test_promises_made_afterwards_have_shares_of_their_own():
    page = models_page(seen(), [kept(0), kept(0, replayed=True, within_p90=10), kept(1, replayed=True)], ())

    assert page.live is not None
    assert page.replayed is not None
    assert [row.p90_share for row in page.live.weeks] == [0.9]
    assert [row.p90_share for row in page.replayed.weeks] == [0.95]
    assert page.live.chart.id != page.replayed.chart.id


def test_a_first_run_claims_no_promise_made_in_time():
    """Everything that a server finds at its first start is promised to afterwards."""
    pages = FakePages(kept=(kept(0, replayed=True),))
    shown = text(get(an_app(pages=pages), "/models").text)

    assert "No promise made at a submission has come due" in shown
    assert "Of 10 promises made afterwards, 90 % ended within their P90" in shown
    assert "a model that may have been fitted on these very jobs" in shown
    assert "promised a duration when they were submitted" not in shown
    document = get(an_app(pages=pages), "/models.json").json()
    assert document["live"] is None
    assert document["replayed"]["days"][0]["p90_share"] == 0.9


def test_what_cannot_be_read_is_not_called_none():
    shown = text(get(an_app(pages=FakePages(now_is=None, advice_now=None, kept=None, models=None)), "/models").text)

    assert "The promises cannot be read just now." in shown
    assert "The registry cannot be read just now." in shown
    assert "has come due" not in shown
    assert "No version is registered" not in shown
    assert "A simple baseline answers" not in shown


@pytest.mark.parametrize(
    "job, made",
    [("train-20", "at submission"), ("train-19", "afterwards"), ("train-17", "now")],
)
def test_a_job_says_when_its_prediction_was_made(job, made):
    app = an_app()
    shown = text(get(app, f"/jobs/{job}").text)

    assert f"Prediction made {made}" in shown
    assert f"predicted {made}" in shown
    assert ("may have been fitted on this very job: that it fits" in shown) is (made == "afterwards")
    rows = {row["id"]: row["predicted"] for row in get(app, "/jobs.json").json()["jobs"]}
    assert rows[job] == made
    assert get(app, f"/jobs/{job}.json").json()["job"]["predicted"] == made


def test_the_chart_says_in_words_what_it_shows():
    chart = promises_kept([kept(0), kept(1, within_p90=7)])
    assert chart is not None
    assert "Of 20 promises made at submission, 80 % ended within their P90" in chart.summary
    assert promises_kept([]) is None


def test_the_models_page_answers_as_page_and_as_json():
    app = an_app()
    assert "Week by week" in get(app, "/models").text
    document = get(app, "/models.json").json()
    assert document["live"]["days"][0]["p90_share"] == pytest.approx(FakePages().kept[-1].p90_share)
    assert "No promise made at a submission has come due" in get(an_app(pages=FakePages(kept=())), "/models").text


def text(page: str) -> str:
    """What a page says, in one line."""
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page)))
