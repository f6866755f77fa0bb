"""The pages and the API show every plug-in by themselves, without an edit."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils.html import escape

import probes
from forecasting import methods
from monitor.analysis.alerts import channels, conditions, reporter_conditions
from monitor.depot.samples import formats as exports
from monitor.models import AlertRule, Run, Series
from monitor.models.role import UserRole
from monitor.runs.imports import formats as imports
from tests.monitor.receivers import RECEIVERS
from tests.monitor.web.pages import builders
from tests.monitor.web.pages.test_settings_series import seen_of, sent

pytestmark = pytest.mark.django_db
CONDITIONS = [*conditions.names(), *reporter_conditions.names()]


@pytest.fixture
def operator(db: None) -> Client:
    return builders.browser_of("operator", UserRole.OPERATOR)


def new_rule(client: Client, condition: str, **fields: Any) -> AlertRule:
    """Define a rule with the form of *condition*, as a user does."""
    path = f"/settings/alerts/new/?condition={condition}"
    plug_in = (conditions if condition in conditions.names() else reporter_conditions).load(condition)
    assert escape(plug_in.label) in client.get("/settings/alerts/new/").content.decode()
    shown = client.get(path).content.decode()
    assert escape(plug_in.description) in shown
    form = {"name": "mine", "enabled": "on", "watches.everything": "on", condition: str(plug_in.least)}
    sent(client, path, 302, form, verb="save", seen=seen_of(shown), **fields)
    return AlertRule.objects.get(name="mine")


@pytest.mark.parametrize("kind", CONDITIONS)
def test_a_rule_of_every_condition_is_defined_by_its_form_and_in_the_api(operator: Client, kind: str) -> None:
    chosen = operator.get("/settings/alerts/new/").content.decode()
    assert f"?condition={kind}" in chosen
    rule = new_rule(operator, kind)
    assert rule.condition == kind
    shown = operator.get("/api/v1/alert-rules/mine").json()
    assert (shown["condition"], shown["threshold"]) == (kind, rule.threshold)
    assert operator.get("/settings/alerts/edit/mine/").status_code == 200


@pytest.mark.parametrize("kind", channels.names())
def test_a_rule_with_every_channel_is_defined_by_its_form_and_in_the_api(operator: Client, kind: str) -> None:
    at = f"notify.{channels.names().index(kind)}"
    with RECEIVERS[kind]() as receiver:
        values = {name: value for name, value in receiver.channel.items() if name != "kind"}
        written = {
            f"{at}.{name}": "\n".join(value) if isinstance(value, list) else value
            for name, value in values.items()
        }
        rule = new_rule(operator, "failures_in_row", **written, **{f"{at}.use": "on"})
        assert rule.notify == [receiver.channel]
    assert operator.get("/api/v1/alert-rules/mine").json()["channels"] == [kind]


@pytest.mark.parametrize("name", probes.names())
def test_every_probe_has_a_form_for_its_series_and_is_in_the_api(operator: Client, name: str) -> None:
    assert f"?probe={name}" in operator.get("/settings/series/new/").content.decode()
    form = operator.get(f"/settings/series/new/?probe={name}").content.decode()
    probe = probes.load(name)
    assert all(f"bindings.{role}" in form for role in probe.roles)
    assert all(f"parameters.{parameter}" in form for parameter in probe.parameters)
    shown = operator.get(f"/api/v1/probes/{name}").json()
    assert (shown["name"], [stage["name"] for stage in shown["stages"]]) == (
        name,
        [stage.name for stage in probe.stages],
    )


@pytest.mark.parametrize("name", methods.names())
def test_every_method_is_in_the_api_with_what_it_does(operator: Client, name: str) -> None:
    shown = operator.get(f"/api/v1/methods/{name}").json()
    assert shown["name"] == name
    assert shown["description"]


@pytest.mark.parametrize("form", exports.names())
def test_every_format_is_offered_by_the_page_of_a_series_and_by_the_api(operator: Client, form: str) -> None:
    builders.circle("circle-ring", builders.sites(3))
    assert f"samples.{form}" in operator.get("/series/circle-ring/").content.decode()
    export = exports.load(form)
    page = operator.get(f"/series/circle-ring/samples.{form}?range=24h")
    answer = operator.get("/api/v1/series/circle-ring/export", {"format": form})
    for download in (page, answer):
        assert (download.status_code, download["Content-Type"]) == (200, export.media_type)
        assert f".{export.suffix}" in download["Content-Disposition"]


@pytest.mark.parametrize("kind", imports.names())
def test_data_of_every_kind_become_a_series_that_pages_and_the_api_show(
    operator: Client, kind: str, tmp_path: Path
) -> None:
    example = imports.load(kind).example
    file = tmp_path / "data"
    file.write_bytes(example.data)
    options = [f"--{name.replace('_', '-')}={value}" for name, value in example.options.items()]
    call_command("import", kind, str(file), *options, "--series=mine", stdout=io.StringIO())
    assert Run.objects.exists()
    for series in Series.objects.all()[:2]:
        assert operator.get(f"/series/{series.name}/").status_code == 200
        assert operator.get(f"/api/v1/series/{series.name}").json()["name"] == series.name
