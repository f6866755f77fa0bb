"""The pages of signatures: proposals, the form with its preview, changes with their record."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from monitor.analysis.signatures.classify_runs import classify_runs
from monitor.models import JudgedHistory, OwnSignature, Run, SignatureChange
from tests.monitor.web.pages import builders
from tests.monitor.web.pages.conftest import Grid

FORM: dict[str, Any] = {
    "name": "jam",
    "title": "Jammed <b>",
    "category": "resource",
    "severity": "major",
    "patterns": "frobnicator \\d+ is jammed\r\n\r\n  gate stuck  ",
    "help": "Oil it.\r\nWait.",
    "counts_against_site": "no",
    "stages": "init  compute",
    "tools": "",
    "precedence": "2",
}


@pytest.fixture
def chief(db: None) -> Client:
    """A browser of a user who may manage signatures."""
    browser, user = Client(), builders.user("chief")
    user.user_permissions.add(Permission.objects.get(codename="manage_signatures"))
    browser.force_login(user)
    return browser


@pytest.fixture
def jammed(grid: Grid, now: datetime) -> None:
    """Three runs that failed by a jammed frobnicator, and one by a full disk."""
    messages = [f"<script>alert()</script>: frobnicator {number} is jammed" for number in range(3)]
    for minutes, message in enumerate([*messages, "write failed: No space left on device"]):
        sent = builders.report(grid.circle, now - timedelta(minutes=minutes))
        builders.delivered(builders.failed(sent, "transfer_ring", grid.resources[1].name, message))
    classify_runs(now)


def text(client: Client, path: str, status: int = 200) -> str:
    answer = client.get(path)
    assert answer.status_code == status
    return answer.content.decode()


def post(client: Client, path: str, status: int = 200, **form: Any) -> str:
    answer = client.post(path, form, follow=True)
    assert answer.status_code == status
    return answer.content.decode()


def test_without_unknown_runs_and_own_signatures_the_page_says_so(grid: Grid, client: Client) -> None:
    shown = text(client, "/failures/signatures/")
    assert "No proposals." in shown
    assert "None. Accept a proposal" in shown


def test_a_proposal_has_its_runs_and_example_and_no_script(jammed: None, client: Client) -> None:
    shown = text(client, "/failures/signatures/")
    assert "3 runs of 1 series" in shown
    assert "frobnicator &lt;number&gt; is jammed" in shown
    assert "&lt;script&gt;alert()" in shown
    assert "<script>alert" not in shown
    assert "?proposal=" not in shown  # the reader may not accept it


def test_history_that_is_still_judged_by_older_signatures_is_mentioned(
    jammed: None, client: Client, now: datetime
) -> None:
    assert "still to be judged again" not in text(client, "/failures/signatures/")
    JudgedHistory.objects.update(rejudge_before=now)
    assert "still to be judged again" in text(client, "/failures/signatures/")


def test_proposals_are_those_of_visible_runs(jammed: None, grid: Grid, client: Client) -> None:
    grid.circle.suite.viewers.add(Group.objects.create(name="others"))
    assert "frobnicator" not in text(client, "/failures/signatures/")


def test_a_proposal_is_reviewed_and_accepted_and_names_its_runs(
    jammed: None, chief: Client, now: datetime
) -> None:
    shown = text(chief, "/failures/signatures/")
    key = shown.split("?proposal=")[1].split('"')[0]
    form = text(chief, f"/failures/signatures/new/?proposal={key}")
    assert "Names <strong>3</strong> of 3 runs of unknown cause, in 1 series." in form
    pattern = form.split('spellcheck="false">')[1].split("</textarea>")[0].strip()
    accepted = post(
        chief,
        "/failures/signatures/new/",
        **{**FORM, "patterns": r"frobnicator \d+ is jammed", "stages": "", "verb": "save"},
    )
    assert "Signature jam added. Failed runs are judged again." in accepted
    assert "jammed" in pattern
    assert "No proposals." in accepted  # also before its runs are judged again
    classify_runs(now)
    assert Run.objects.filter(signature__name="jam").count() == 3
    assert "of your own, from" in text(chief, "/failures/causes/jam/")
    gone = chief.get(f"/failures/signatures/new/?proposal={key}", follow=True).content.decode()
    assert "This proposal exists no more" in gone


def test_the_form_becomes_the_values_of_the_signature(chief: Client) -> None:
    post(chief, "/failures/signatures/new/", **FORM, verb="save")
    row = OwnSignature.objects.get()
    assert row.patterns == [r"frobnicator \d+ is jammed", "gate stuck"]
    assert (row.help, row.counts_against_site, row.stages) == ("Oil it.\nWait.", False, ["init", "compute"])
    assert (row.tools, row.precedence, row.origin, row.changed_by) == ([], 2, "page", "chief")
    shown = text(chief, "/failures/signatures/")
    assert "Jammed &lt;b&gt;" in shown
    form = text(chief, "/failures/signatures/edit/jam/")
    for part in ("gate stuck", '<option value="no" selected>', 'value="init compute"', "Oil it."):
        assert part in form, part


def test_a_preview_saves_nothing(jammed: None, chief: Client) -> None:
    shown = post(chief, "/failures/signatures/new/", **{**FORM, "stages": ""}, verb="preview")
    assert "Names <strong>3</strong> of 3 runs" in shown
    assert not OwnSignature.objects.exists()


def test_a_pattern_that_matches_other_causes_needs_a_confirmation(jammed: None, chief: Client) -> None:
    greedy = {**FORM, "patterns": "jammed|space left", "stages": "", "verb": "save"}
    refused = post(chief, "/failures/signatures/new/", 409, **greedy)
    assert "Also matches 1 run that other signatures name" in refused
    assert "/failures/causes/disk-full/" in refused
    assert not OwnSignature.objects.exists()
    post(chief, "/failures/signatures/new/", **greedy, confirmed="on")
    assert OwnSignature.objects.exists()


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("name", "Jam Jam", "expected a name"),
        ("name", "", "expected a name"),
        ("category", "", "expected"),
        ("patterns", "(?=x)", "not a regular expression of RE2"),
        ("patterns", "x" * 50_000, "at most 1000 characters"),
        ("patterns", "\n".join(["x"] * 51), "at most 50"),
        ("patterns", "", "at least 1"),
        ("title", "x\x00" * 300, "at most 200 characters"),
        ("precedence", "1" * 5000, "whole number"),
        ("precedence", "--1", "whole number"),
        ("stages", "<script>", "expected a name"),
    ],
)
def test_an_invalid_form_is_shown_again_with_its_error(
    chief: Client, field: str, value: str, message: str
) -> None:
    shown = post(chief, "/failures/signatures/new/", 409, **{**FORM, field: value}, verb="save")
    assert message in shown
    assert '<script>"' not in shown
    assert not OwnSignature.objects.exists()


def test_of_two_users_who_edit_the_same_version_the_second_sees_the_change(chief: Client) -> None:
    post(chief, "/failures/signatures/new/", **FORM, verb="save")
    post(chief, "/failures/signatures/edit/jam/", **{**FORM, "title": "First"}, version="1", verb="save")
    late = {**FORM, "title": "Second"}
    refused = post(chief, "/failures/signatures/edit/jam/", 409, **late, version="1", verb="save")
    assert "The signature jam was changed at" in refused
    assert 'name="version" value="1"' in refused
    assert OwnSignature.objects.get().title == "First"


def test_a_withdrawn_signature_is_gone_and_recorded(chief: Client) -> None:
    post(chief, "/failures/signatures/new/", **FORM, verb="save")
    assert "was changed" in post(chief, "/failures/signatures/withdraw/jam/", version="7")
    assert "Signature jam withdrawn." in post(chief, "/failures/signatures/withdraw/jam/", version="1")
    assert [change.action for change in SignatureChange.objects.all()] == ["withdrawn", "added"]
    assert "is withdrawn" in post(chief, "/failures/signatures/withdraw/jam/", version="1")
    assert ", withdrawn." in text(chief, "/failures/causes/jam/")
    text(chief, "/failures/signatures/edit/jam/", 404)


@pytest.mark.parametrize("path", ["new/", "edit/jam/", "withdraw/jam/"])
def test_only_users_with_the_permission_change_signatures(
    chief: Client, client: Client, runner: Client, path: str
) -> None:
    post(chief, "/failures/signatures/new/", **FORM, verb="save")
    for browser in (client, runner):
        assert browser.post(f"/failures/signatures/{path}", FORM).status_code == 403
    assert Client().post(f"/failures/signatures/{path}", FORM).status_code == 302
    assert OwnSignature.objects.get().version == 1
    assert "/failures/signatures/edit/jam/" not in text(client, "/failures/signatures/")


def test_the_number_of_queries_does_not_depend_on_the_texts(
    grid: Grid, client: Client, now: datetime, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(12):
        sent = builders.report(grid.circle, now - timedelta(minutes=number))
        message = f"{'abcdefghijkl'[number] * 9} frobnicator is jammed"
        builders.delivered(builders.failed(sent, "transfer_ring", grid.resources[1].name, message))
    classify_runs(now)
    with django_assert_max_num_queries(16):
        text(client, "/failures/signatures/")
