"""Pages as values: one frozen context a page, made by one pure function from what was read.

Belongs here: contexts whose every field carries help text, and the functions that build them. Must not
be here: reading data (``dashboards.routes``), markup (``templates``), chart specifications (``charts``).
"""

from __future__ import annotations

from dashboards.pages.demand_report import DemandReportPage, demand_report_page
from dashboards.pages.duration_report import DurationReportPage, duration_report_page
from dashboards.pages.frame import Page, Seen
from dashboards.pages.jobs import JobPage, JobsPage, job_page, jobs_page
from dashboards.pages.models import ModelsPage, models_page
from dashboards.pages.overview import OverviewPage, overview_page
from dashboards.pages.pool import PoolPage, pool_page
from dashboards.pages.warm_report import WarmReportPage, warm_report_page

__all__ = [
    "DemandReportPage",
    "DurationReportPage",
    "JobPage",
    "JobsPage",
    "ModelsPage",
    "OverviewPage",
    "Page",
    "PoolPage",
    "Seen",
    "WarmReportPage",
    "demand_report_page",
    "duration_report_page",
    "job_page",
    "jobs_page",
    "models_page",
    "overview_page",
    "pool_page",
    "warm_report_page",
]
