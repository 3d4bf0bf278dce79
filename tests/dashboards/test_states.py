"""The pages as they are served: in every state a person may find them in."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from datetime import timedelta
from typing import get_args, get_type_hints

import pytest

from advisor.domain.jobs import Job
from advisor.domain.plans import Advice, Mode, PoolWithoutAdvice
from dashboards.pages.overview import SKILLED, PoolRow
from dashboards.pages.pool import DemandView
from serving.api.schemas import Demand
from tests.builders import a_job
from tests.serving.fake_service import FakePages
from tests.serving.fake_values import NOON, a_demand, a_pool, a_slice_class, a_warm_plan, an_advice
from tests.serving.http import an_app, get

HTML = {"accept": "text/html"}


def page(path: str, pages: FakePages | None = None, status: int = 200) -> str:
    answer = get(an_app(pages=pages), path, headers=HTML)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return html.unescape(re.sub(r"\s+", " ", answer.text))


def test_the_overview_shows_recommended_against_current_and_the_way_to_each_pool():
    shown = page("/")

    assert '<a href="/pools/a100">a100</a>' in shown
    assert "<strong>15 min</strong>" in shown
    assert "now 30 min" in shown
    assert "not sliced" in shown
    assert "1 refused" in shown
    assert "16 GPUs" in shown


def test_pools_with_something_to_change_come_first_and_the_largest_saving_before_the_others():
    idle, small, large = (
        replace(a_pool("a"), changes=()),
        a_pool("b"),
        a_pool("c", classes=(a_slice_class(current=120.0),)),
    )

    shown = page("/", FakePages(advice_now=an_advice(idle, small, large)))

    assert re.findall(r'<a href="/pools/(\w)">', shown) == ["c", "b", "a"]


def test_a_pool_shows_keep_alive_beside_what_it_is_now():
    assert "now 180s" in page("/pools/a100")


def test_a_class_better_left_unsliced_names_its_best_length_all_the_same():
    assert 'not sliced <span class="sub">else 45 min</span>' in page("/pools/l4-shared")


def test_a_synthetic_history_is_labelled_on_every_page():
    for path in ("/", "/pools/a100", "/jobs", "/jobs/train-20"):
        assert "SYNTHETIC" in page(path)


def test_a_real_history_carries_no_such_label():
    class Real(FakePages):
        def history(self):
            return replace(super().history(), synthetic=False)

    assert "SYNTHETIC" not in page("/", Real(advice_now=an_advice(synthetic=False)))


def test_old_data_are_called_stale_with_their_age():
    shown = page("/", FakePages(now_is=NOON + timedelta(hours=3)))

    assert "The advice is 3 h old" in shown
    assert "The last event in the history is 3.03 h old" in shown


def test_fresh_data_are_not_called_stale():
    assert "Stale" not in page("/")


def test_before_the_first_cycle_the_overview_says_what_is_missing():
    shown = page("/", FakePages(advice_now=None))

    assert "No advice yet" in shown
    assert "no advice cycle has run yet" in shown


def test_while_not_even_the_moment_is_known_the_trouble_is_told_once():
    shown = page("/", FakePages(now_is=None, advice_now=None))

    assert "No advice yet" in shown
    assert shown.count("no advice cycle has run yet") == 1


def test_reasons_that_a_section_tells_are_not_told_twice():
    pool = replace(a_pool(), reasons=("slices: switches not measured", "sharing: whole GPUs only"))

    shown = page("/pools/a100", FakePages(advice_now=an_advice(pool)))

    assert shown.count("switches not measured") == 1
    assert "sharing: whole GPUs only" in shown


def test_an_empty_history_is_counted_without_times_it_does_not_have():
    class Empty(FakePages):
        def history(self):
            return replace(super().history(), jobs=0, first=None, last=None)

    assert "<dt>History</dt><dd>0 jobs</dd>" in page("/", Empty())


def test_a_pool_that_could_not_be_advised_on_is_told_at_the_top_of_every_page():
    without = (PoolWithoutAdvice("h100", "samples: 3 is refused; another step. Fit it anew."),)
    pages = FakePages(advice_now=replace(an_advice(a_pool("a100")), without_advice=without))

    for path in ("/", "/pools/a100", "/jobs"):
        body = page(path, pages)
        assert "<strong>No advice for pool h100</strong> <span>samples: 3 is refused" in body
    assert "no advice for pool h100: samples: 3 is refused" in page("/pools/h100", pages, status=503)
    told = get(an_app(pages=pages), "/overview.json").json()["frame"]["advice"]["without_advice"]
    assert told == [{"pool": "h100", "reason": "samples: 3 is refused; another step. Fit it anew."}]


def test_a_cluster_without_pools_is_told_how_to_be_seen():
    nothing = Advice(time=NOON, mode=Mode.OBSERVE, pools=())

    assert "No pool to advise on" in page("/", FakePages(advice_now=nothing))


def test_a_store_that_cannot_be_read_leaves_the_rest_of_the_page():
    shown = page("/", FakePages(history_trouble="the database is locked"))

    assert "the database is locked" in shown
    assert "<strong>15 min</strong>" in shown


def test_a_pool_shows_what_to_change_and_why_a_guard_refuses():
    shown = page("/pools/a100")

    assert "spec.disruption.consolidateAfter" in shown
    assert "an empty node is wanted again" in shown
    assert '<span class="chip warn">refused</span>' in shown
    assert "a limit may grow at most twofold" in shown


def test_a_pool_offers_the_manifest_of_its_allowed_changes_and_own_objects():
    own = {"apiVersion": "autoscaling.x-k8s.io/v1alpha1", "kind": "CapacityBuffer", "metadata": {"name": "a100"}}
    pool = replace(a_pool(), manifests=(own,))

    shown = page("/pools/a100", FakePages(advice_now=an_advice(pool)))

    assert "kind: NodePool" in shown
    assert "consolidateAfter: 600s" in shown
    assert "--- apiVersion: autoscaling.x-k8s.io/v1alpha1 kind: CapacityBuffer" in shown


def test_the_manifest_says_which_namespace_must_be_there_first():
    own = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a100", "namespace": "ours"}}

    plain = page("/pools/a100", FakePages(advice_now=an_advice(a_pool())))
    with_own = page("/pools/a100", FakePages(advice_now=an_advice(replace(a_pool(), manifests=(own, own)))))

    assert "create namespace" not in plain
    assert with_own.count("# once, where it is not there yet: kubectl create namespace ours apiVersion") == 1


def test_where_a_manifest_is_of_no_use_is_said_above_it_and_in_what_is_copied():
    pool = replace(a_pool(), manifest_notes=("this pool's jobs all came\nfrom Slurm",))

    shown = page("/pools/a100", FakePages(advice_now=an_advice(pool)))

    assert "<strong>Before you apply it</strong> <span>this pool's jobs all came from Slurm</span>" in shown
    assert "# note: this pool's jobs all came from Slurm apiVersion: karpenter.sh/v1" in shown
    assert "Before you apply it" not in page("/pools/a100")


def test_a_pool_that_is_as_it_should_be_says_so():
    pool = replace(a_pool(), changes=(), patch=None)

    shown = page("/pools/a100", FakePages(advice_now=an_advice(pool)))

    assert "Nothing: the pool is as it should be." in shown
    assert "Manifest" not in shown


def test_a_demand_model_without_skill_is_called_so():
    demand = replace(a_demand(), horizons=a_demand().horizons[-1:])

    shown = FakePages(advice_now=an_advice(replace(a_pool(), demand=demand)))

    assert "At no horizon does the demand model beat the best simple baseline" in page("/pools/a100", shown)
    assert "no skill" in page("/", shown)


def test_what_was_assumed_to_be_set_now_is_called_that():
    described, assumed = an_advice(), replace(an_advice(), cluster_assumed=True)

    assert "now 30 min" in page("/", FakePages(advice_now=described))
    assert "now (assumed) 30 min" in page("/", FakePages(advice_now=assumed))
    pool = page("/pools/a100", FakePages(advice_now=assumed))
    assert "now (assumed) 30 min" in pool
    assert "now (assumed) 180s" in pool


def test_the_chance_that_a_warm_node_is_needed_stands_beside_the_time_it_is_the_chance_of():
    (first, *others) = a_warm_plan().curve
    warm = replace(a_warm_plan(), curve=(replace(first, horizon_minutes=240.0), *others))

    shown = page("/pools/a100", FakePages(advice_now=an_advice(replace(a_pool(), warm=warm))))

    assert '80 % <span class="sub">within 4 h</span>' in shown
    assert "80 % within 4 h" in shown.replace("\\u0020", " ")
    assert "within the start latency" not in shown


def test_pages_mean_by_skilled_what_the_api_means_by_it():
    said = Demand.model_fields["skilled"].description.removeprefix("True where ").removesuffix(".")

    assert said in SKILLED
    for view in (PoolRow, DemandView):
        assert SKILLED in get_args(get_type_hints(view, include_extras=True)["skilled"])


def test_a_pool_of_which_nothing_but_the_need_is_known_still_has_a_page():
    bare = replace(
        a_pool(),
        demand=replace(a_demand(), horizons=()),
        warm=replace(a_warm_plan(), curve=(), warm_gpus=0),
        slice_plan=replace(a_pool().slice_plan, classes=()),
        changes=(),
        patch=None,
    )

    shown = page("/pools/a100", FakePages(advice_now=an_advice(bare), recent=()))

    assert "Neither recent demand nor a forecast is known." in shown
    assert "no forecast" in page("/", FakePages(advice_now=an_advice(bare)))


def test_an_unknown_pool_has_an_error_page():
    assert "Nothing is at /pools/h100." in page("/pools/h100", status=404)


def test_a_pool_before_the_first_cycle_says_why_there_is_nothing():
    assert "no advice cycle has run yet" in page("/pools/a100", FakePages(advice_now=None), status=503)


@pytest.mark.parametrize("pool", ["team/a100", "a100.v2", "ä 100 %", "<b>bold</b>", "a?b#c"])
def test_a_pool_is_reached_from_the_overview_whatever_its_name_holds(pool):
    pages = FakePages(advice_now=an_advice(a_pool(pool)))
    app = an_app(pages=pages)

    (url,) = re.findall(r'<a href="(/pools/[^"]+)">', get(app, "/", headers=HTML).text)
    shown = get(app, url, headers=HTML)
    (twin,) = re.findall(r'<a href="([^"]+)">This page as JSON', shown.text)

    assert shown.status_code == 200
    assert f"<h1>{html.escape(pool)}</h1>" in shown.text.replace("&#39;", "'")
    assert get(app, twin).json()["pool"] == pool


@pytest.mark.parametrize(
    "job_id, words",
    [
        ("vision/train-21", ["waiting", "Started</dt><dd>\u2013"]),
        ("train-20", ["running", "Still to go", "ran 30 min so far"]),
        ("train-19", ["completed", "Really", "It ended within a factor of two"]),
        ("train-18", ["failed", "It ran longer than the P90", "0.25 GPU"]),
        ("train-17", ["censored", "Ended</dt><dd>\u2013", "ran at least 60 min"]),
    ],
)
def test_a_job_shows_its_prediction_and_what_became_of_it(job_id, words):
    shown = page(f"/jobs/{job_id}")

    assert "25.2 min" in shown, "the predicted median"
    for word in words:
        assert word in shown


def test_a_job_that_ended_at_once_has_a_page():
    instant = a_job("blink", submit=NOON - timedelta(hours=1), seconds=0.0)

    assert "far from the predicted median" in page("/jobs/blink", FakePages(jobs_now=(instant,)))


def test_an_unknown_job_has_an_error_page():
    assert "Nothing is at /jobs/none." in page("/jobs/none", status=404)


def test_jobs_are_listed_newest_first_and_lead_to_their_pages():
    app = an_app()

    urls = re.findall(r'<a href="(/jobs/[^"]+)" title=', get(app, "/jobs", headers=HTML).text)

    assert urls[0] == "/jobs/vision%2Ftrain-21"
    assert all(get(app, url, headers=HTML).status_code == 200 for url in urls)


TWINS = FakePages(
    jobs_now=(a_job("1234", submit=NOON, source="slurm-a"), a_job("1234", submit=NOON, gpus=8.0, source="slurm/b ä"))
)


def test_jobs_of_two_sources_that_share_an_id_have_a_page_each():
    app = an_app(pages=TWINS)

    urls = re.findall(r'<a href="(/jobs/[^"]+)" title', get(app, "/jobs", headers=HTML).text)
    shown = [get(app, html.unescape(url), headers=HTML).text for url in urls]
    twins = [
        get(app, html.unescape(re.findall(r'<a href="([^"]+)">This page as JSON', one)[0])).json() for one in shown
    ]

    assert urls == ["/jobs/1234?source=slurm-a", "/jobs/1234?source=slurm%2Fb%20%C3%A4"]
    assert [(twin["job"]["source"], twin["job"]["gpus"]) for twin in twins] == [("slurm-a", 1.0), ("slurm/b ä", 8.0)]
    assert "slurm-a" in shown[0]


def test_an_id_of_several_sources_is_answered_with_their_names():
    shown = page("/jobs/1234", TWINS, status=422)
    told = get(an_app(pages=TWINS), "/jobs/1234.json")

    assert "one each of slurm-a, slurm/b ä" in shown
    assert "?source=slurm-a" in shown
    assert told.status_code == 422
    assert told.json()["errors"][0]["value"] == "1234"
    assert page("/jobs/1234?source=slurm-c", TWINS, status=404)


def test_a_long_id_is_shortened_for_show_and_whole_where_it_leads_and_in_its_title():
    uid = "0f6c1d2e-7a4b-4c1f-9b7e-5d1a9c41d2e0"
    pages = FakePages(jobs_now=(a_job(uid, submit=NOON - timedelta(hours=1)),))

    assert f'<a href="/jobs/{uid}" title="{uid}">0f6c1d2e-7a4b\u20269c41d2e0</a>' in page("/jobs", pages)
    assert f'<h1 class="long">{uid}</h1>' in page(f"/jobs/{uid}", pages)
    assert get(an_app(pages=pages), "/jobs.json").json()["jobs"][0]["id"] == uid


def test_durations_of_a_column_are_aligned_where_number_and_unit_meet():
    assert '<span>25.2 <span class="unit">min</span></span>' in page("/jobs")
    assert '<span>\u2013 <span class="unit"></span></span>' in page("/jobs"), "what waits has not run"


def test_jobs_are_searched():
    shown = page("/jobs?q=train-19")

    assert "train-19" in shown
    assert "train-20" not in shown
    assert 'value="train-19"' in shown


def test_a_search_without_result_leads_back():
    assert "No job found" in page("/jobs?q=<script>")


def test_an_empty_history_tells_how_to_fill_it():
    assert "No jobs yet" in page("/jobs", FakePages(jobs_now=()))


def test_a_full_list_says_that_there_are_more():
    many = tuple(a_job(f"job-{n}", submit=NOON - timedelta(hours=n + 1)) for n in range(150))

    assert "The newest 100 are shown" in page("/jobs", FakePages(jobs_now=many))


def test_what_users_name_their_jobs_never_becomes_markup():
    hostile = "</script><script>alert(1)</script>"
    job = Job(id=hostile, submit=NOON, gpus=1.0, user=hostile, name=hostile, pool=hostile)

    for path in ("/jobs", f"/jobs/{hostile}"):
        text = get(an_app(pages=FakePages(jobs_now=(job,))), path, headers=HTML).text
        assert "<script>alert" not in text


@pytest.mark.parametrize(
    "path", ["/overview.json", "/pools/a100.json", "/jobs.json", "/jobs.json?q=ada", "/jobs/train-20.json"]
)
def test_every_page_answers_as_json(path):
    answer = get(an_app(), path)

    assert answer.headers["content-type"] == "application/json"
    assert json.loads(answer.text)["frame"]["synthetic"] is True


def test_pages_and_files_name_nothing_outside():
    app = an_app()

    for path in ("/", "/pools/a100", "/jobs", "/jobs/train-20", "/nope"):
        text = get(app, path, headers=HTML).text
        assert not re.findall(r'(?:src|href|action)="(?!/|#)[^"]*"', text), path
        assert "<script>" not in text
        assert "style=" not in text


def test_files_are_kept_for_ever_under_an_address_that_changes_with_them():
    app = an_app()
    (url,) = re.findall(r'<link rel="stylesheet" href="([^"]+)">', get(app, "/", headers=HTML).text)

    answer = get(app, url)

    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert re.fullmatch(r"/static/style\.css\?v=[0-9a-f]{12}", url)


def test_the_charting_script_comes_from_the_installed_package_and_compressed():
    app = an_app()

    packed = get(app, "/static/plotly.min.js", headers={"accept-encoding": "gzip"})
    plain = get(app, "/static/plotly.min.js", headers={"accept-encoding": "identity"})

    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert packed.content == plain.content
    assert int(packed.headers["content-length"]) < len(plain.content) / 2
    assert b"plotly.js" in plain.content[:100]


@pytest.mark.parametrize("name", ["none.js", "..%2Froutes.py", "%2Fetc%2Fpasswd", "style.css%00.js"])
def test_no_other_file_is_served(name):
    assert get(an_app(), f"/static/{name}").status_code == 404


def test_old_addresses_lead_to_the_new_ones():
    assert get(an_app(), "/pools").headers["location"] == "/"
    assert get(an_app(), "/favicon.ico").headers["location"].startswith("/static/mark.svg")
