"""The documentation of the API: its list, its pages, and the form that calls an operation."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import expect

from monitor.models import ApiToken
from monitor.models.token import READ
from monitor.web.pages import api_documentation
from monitor.web.pages.api_documentation import SCOPE_WORDS
from tests.monitor.web.pages.chromium import CHROMIUM
from tests.monitor.web.pages.visits import FilledDepot, Visitors, look

in_a_browser = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on the PATH"),
]


def test_the_list_has_every_operation_and_is_filtered_by_the_server(client: Client) -> None:
    page = client.get("/help/api/").content.decode()
    assert page.count("data-search=") > 100
    assert all(f"<code>{scope}</code>" in page for scope in SCOPE_WORDS)
    filtered = client.get("/help/api/", {"q": "rank post"}).content.decode()
    assert re.findall(r'href="/help/api/(\w+)/"', filtered) == ["rank_forecasts"]
    assert "No operation matches" in client.get("/help/api/", {"q": "nothing like it"}).content.decode()


def test_a_page_shows_scope_parameters_errors_and_command(db: None) -> None:
    """Without login: the documentation has no data of the depot."""
    page = Client().get("/help/api/list_runs/")
    text = page.content.decode()
    assert page.status_code == 200
    assert all(
        part in text for part in ("<code>read</code>", "curl -H", "empty_window", 'aria-label="Errors"')
    )
    assert Client().get("/help/api/no_such_operation/").status_code == 404


class TestInABrowser:
    pytestmark = in_a_browser

    def test_the_pages_look_well(self, visitors: Visitors, depot: FilledDepot) -> None:
        wrong = look(visitors, "/help/api/", "full/api", schemes=["light"])
        wrong += look(visitors, "/help/api/rank_forecasts/", "full/api-operation", schemes=["dark"])
        assert not wrong, "\n".join(wrong)

    @pytest.mark.nightly
    def test_every_operation_looks_well(self, visitors: Visitors, depot: FilledDepot) -> None:
        wrong = []
        for operation in api_documentation.operations():
            address, name = f"/help/api/{operation.id}/", f"api/{operation.id}"
            wrong += look(visitors, address, name, screens=["phone"], schemes=["dark"])
        assert not wrong, "\n".join(wrong)

    def test_a_request_is_sent_by_session_and_by_token_which_is_not_stored(
        self, visitors: Visitors, depot: FilledDepot
    ) -> None:
        visit = visitors.come()
        page = visit.open("/help/api/list_series/")
        page.get_by_role("button", name="Send GET").click()
        expect(page.get_by_role("status").filter(has_text="200")).to_be_visible()
        expect(page.get_by_label("Answer", exact=True)).to_contain_text("gather-main")
        page.get_by_label("Token", exact=True).fill("gcast_unknown")
        page.get_by_role("button", name="Send GET").click()
        expect(page.get_by_label("Answer", exact=True)).to_contain_text("not_authenticated")
        token = ApiToken.objects.issue(User.objects.get(username="operator"), "mine", [READ])
        page.get_by_label("Token", exact=True).fill(token)
        page.get_by_role("navigation", name="Operations").get_by_role("link", name="Show a series").click()
        expect(page).to_have_url(re.compile("/help/api/show_series/$"))
        page.get_by_label("series (required)").fill("circle-ring")
        page.get_by_role("button", name="Send GET").click()
        expect(page.get_by_label("Answer", exact=True)).to_contain_text('"circle-ring"')
        stored = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])")
        assert token not in stored
        page.reload()
        expect(page.get_by_label("Token", exact=True)).to_have_value("")
        assert [text for text in visit.complaints if "401" not in text] == []
