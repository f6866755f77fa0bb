"""A client that a generator makes from the OpenAPI document asks, ranks and reports outcomes."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest
from django.core.handlers.wsgi import WSGIHandler
from django.utils import timezone
from openapi_python_client import generate
from openapi_python_client.config import Config, ConfigFile, MetaType

from monitor.models import Forecast, PingKey, Run
from tests.monitor.outside import reported_series
from tests.monitor.web.api.example_grid import SERIES, example_grid
from tests.monitor.web.api.openapi_document import openapi_document

PACKAGE = "generated_gridcast_client"
# What the generator cannot send; each operation takes another type, too.
UNSUPPORTED = ("application/x-ndjson", "text/plain", "application/vnd.gridcast.records")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of the package that the generator writes with its defaults; it leaves no operation out."""
    directory = tmp_path_factory.mktemp("client")
    document = directory / "openapi.json"
    document.write_text(json.dumps(openapi_document()))
    config = Config.from_sources(
        ConfigFile(post_hooks=[]),
        MetaType.NONE,
        document,
        "utf-8",
        overwrite=False,
        output_path=directory / PACKAGE,
    )
    problems = generate(config=config)
    left_out = [f"{problem.header} {problem.detail}" for problem in problems]
    assert [text for text in left_out if "will not be generated" in text or not is_about_a_type(text)] == []
    sys.path.insert(0, str(directory))
    yield PACKAGE
    sys.path.remove(str(directory))
    for name in [name for name in sys.modules if name.startswith(PACKAGE)]:
        del sys.modules[name]


def is_about_a_type(warning: str) -> bool:
    return warning.endswith(tuple(f"Unsupported content type {kind}" for kind in UNSUPPORTED))


@pytest.fixture
def client(transactional_db: None, package: str) -> Any:
    token = example_grid()
    transport = httpx.WSGITransport(WSGIHandler())
    made: Any = load("client").AuthenticatedClient
    return made(
        "http://testserver", token, raise_on_unexpected_status=True, httpx_args={"transport": transport}
    )


def load(name: str) -> ModuleType:
    return importlib.import_module(f"{PACKAGE}.{name}")


def operation(tag: str, name: str) -> Any:
    return load(f"api.{tag}.{name}")


def test_a_scheduler_goes_from_the_series_to_the_outcome(client: Any) -> None:
    models: Any = load("models")
    (series,) = operation("series", "list_series").sync(client=client).series
    assert series.name == SERIES
    forecast = operation("forecasts", "show_forecast").sync(client=client, series=series.name)
    assert (forecast.series, forecast.interval.level) == (SERIES, 0.8)
    question = models.RankQuestion([models.Candidate(key="here", series=SERIES)])
    ranking = operation("forecasts", "rank_forecasts").sync(client=client, body=question)
    assert [(entry.key, entry.forecast) for entry in ranking.ranked] == [("here", forecast.id)]
    began = timezone.now() - timedelta(minutes=5)
    Forecast.objects.update(issued_at=began)
    outcome = models.OutcomeIn("job-1", models.OutcomeInOutcome.PASSED, began, timezone.now())
    told = operation("forecasts", "report_outcome").sync(client=client, forecast=forecast.id, body=outcome)
    assert (told.forecast, told.is_duplicate) == (forecast.id, False)


def test_no_operation_is_left_out(package: str) -> None:
    ids = {each["operationId"] for path in openapi_document()["paths"].values() for each in path.values()}
    directory = Path(load("api").__path__[0])
    assert ids - {file.stem for file in directory.rglob("*.py")} == set()


def test_a_program_reports_a_run_with_its_output(client: Any) -> None:
    series = reported_series()
    _, key = PingKey.objects.issue(series, name="cron", who="ada", now=timezone.now())
    models = importlib.import_module(f"{PACKAGE}.models")
    output = models.PingIn("no space left")
    pinged = operation("reports", "ping_signal_with_text_by_key").sync(
        client=client, key=key, signal="3", body=output
    )
    assert (pinged.series, pinged.state) == (series.name, "failed")
    assert Run.objects.get(pk=pinged.run).reason.endswith("exit status 3: no space left")


def test_a_refusal_is_a_problem_with_a_code(client: Any) -> None:
    refused = operation("forecasts", "show_forecast").sync(client=client, series="nobody-knows")
    assert (refused.status, refused.code) == (404, "unknown_series")
