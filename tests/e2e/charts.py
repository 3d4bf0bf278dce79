"""Waiting for the charts of a page."""

from __future__ import annotations

from playwright.sync_api import Page, expect

__all__ = ["wait_for_charts"]


def wait_for_charts(page: Page) -> None:
    """Until every chart is drawn.

    By locators: a condition given as text is evaluated in the page, which the page's security policy forbids.
    """
    expect(page.locator(".plot:not(:has(.main-svg))")).to_have_count(0)
