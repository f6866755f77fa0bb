"""HTML to PDF by WeasyPrint, which needs Pango of the distribution."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

INSTALL = (
    "install Pango (Debian, Ubuntu: apt-get install libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0) "
    "and WeasyPrint (pip install 'gridcast[pdf]'; make installs it), or print the file of --html"
)


class PdfUnavailable(Exception):
    """WeasyPrint, or a library that it needs, is not installed; the message says what to install."""


def _weasyprint() -> Any:
    import weasyprint  # noqa: PLC0415 - it loads libraries that may be missing

    return weasyprint


def pdf_renderer(load: Callable[[], Any] = _weasyprint) -> Callable[[str], bytes]:
    """Return the function that turns an HTML document into PDF; *load* imports WeasyPrint.

    Raises:
        PdfUnavailable: WeasyPrint cannot be loaded.
    """
    logging.getLogger("weasyprint").setLevel(logging.ERROR)  # it warns about CSS for screens
    try:
        with redirect_stdout(io.StringIO()):  # it prints advice where a library is missing
            weasyprint = load()
    except (ImportError, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise PdfUnavailable(f"cannot make PDF: {reason}; {INSTALL}") from error

    fetcher = weasyprint.URLFetcher(allowed_protocols=())  # nothing outside of the document is read

    def render(html: str) -> bytes:
        rendered: bytes = weasyprint.HTML(string=html, url_fetcher=fetcher).write_pdf()
        return rendered

    return render
