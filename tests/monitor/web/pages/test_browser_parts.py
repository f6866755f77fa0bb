"""A failed part and a failed page in a browser, on each screen, light and dark."""

from __future__ import annotations

import pytest

from monitor.models import Site
from tests.monitor.web.pages.chromium import CHROMIUM
from tests.monitor.web.pages.http.test_parts import SENTENCE, planted
from tests.monitor.web.pages.visits import FilledDepot, Visitors, look

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on the PATH"),
]


def test_a_failed_part_looks_well(visitors: Visitors, depot: FilledDepot) -> None:
    site = Site.objects.get(name="site2")
    with planted("overview", "incidents"), planted("site", "series"), planted("site", "state"):
        assert look(visitors, "/", "failed-part-overview", with_axe=False) == []
        assert look(visitors, f"/sites/{site.name}/", "failed-part-site") == []
        page = visitors.come().open("/")
        assert SENTENCE in page.locator("#status .failed-part").inner_text()
        assert page.locator("#grid-scroll").count() == 1
