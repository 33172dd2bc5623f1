"""Launches -> one HTML page that needs nothing else: no network, no script, no font."""

from triptych.report.html.page import page

__all__ = ["page"]
