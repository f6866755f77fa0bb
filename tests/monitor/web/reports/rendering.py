"""PDF for tests, where this machine can make it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from monitor.web.reports.pdf import PdfUnavailable, pdf_renderer


def available_renderer() -> Callable[[str], bytes]:
    """Return the renderer of PDF; skip the test where a library is missing, and name it."""
    try:
        return pdf_renderer()
    except PdfUnavailable as error:
        pytest.skip(str(error))
