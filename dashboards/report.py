"""Reports as single files that need nothing else: no server, no network."""

from __future__ import annotations

from advisor.domain.reports import DemandReport, DurationReport
from advisor.domain.warm_reports import WarmReport
from dashboards.assets import Assets
from dashboards.pages.demand_report import DemandReportPage, demand_report_page
from dashboards.pages.duration_report import DurationReportPage, duration_report_page
from dashboards.pages.warm_report import WarmReportPage, warm_report_page
from dashboards.render import Renderer

__all__ = ["demand_report_html", "duration_report_html", "warm_report_html"]


def duration_report_html(report: DurationReport) -> str:
    """``report`` as one HTML page with its scripts and styles inside; about 5 MB, most of it Plotly's script.

    Raises:
        Defect: a figure holds a number that is not finite, or Plotly is installed without its script.
    """
    return Renderer(Assets()).page("duration_report.html", duration_report_page(report), DurationReportPage)


def demand_report_html(report: DemandReport) -> str:
    """``report`` as one HTML page with its scripts and styles inside; about 5 MB, most of it Plotly's script.

    Raises:
        Defect: a figure holds a number that is not finite, or Plotly is installed without its script.
    """
    return Renderer(Assets()).page("demand_report.html", demand_report_page(report), DemandReportPage)


def warm_report_html(report: WarmReport) -> str:
    """``report`` as one HTML page with its scripts and styles inside; about 5 MB, most of it Plotly's script.

    Raises:
        Defect: a figure holds a number that is not finite, or Plotly is installed without its script.
    """
    return Renderer(Assets()).page("warm_report.html", warm_report_page(report), WarmReportPage)
