"""A client that a generator makes from the OpenAPI document asks, ranks and reports outcomes."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from datetime import timedelta
from types import ModuleType
from typing import Any

import httpx
import pytest
from django.core.handlers.wsgi import WSGIHandler
from django.utils import timezone
from openapi_python_client import generate
from openapi_python_client.config import Config, ConfigFile, MetaType

from monitor.models import Forecast
from tests.monitor.api.example_grid import SERIES, example_grid
from tests.monitor.api.openapi_document import openapi_document

PACKAGE = "generated_gridcast_client"
# Text that is not JSON: what the generator has no types for.
TEXTS = {
    "application/x-ndjson": "application/octet-stream",
    "application/vnd.gridcast.records": "application/octet-stream",
    "text/plain": "application/octet-stream",
}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of the package that the generator writes, without a warning or an error."""
    directory = tmp_path_factory.mktemp("client")
    document = directory / "openapi.json"
    document.write_text(json.dumps(openapi_document()))
    config = Config.from_sources(
        ConfigFile(post_hooks=[], content_type_overrides=TEXTS),
        MetaType.NONE,
        document,
        "utf-8",
        overwrite=False,
        output_path=directory / PACKAGE,
    )
    problems = generate(config=config)
    assert [(problem.header, problem.detail) for problem in problems] == []
    sys.path.insert(0, str(directory))
    yield PACKAGE
    sys.path.remove(str(directory))
    for name in [name for name in sys.modules if name.startswith(PACKAGE)]:
        del sys.modules[name]


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


def test_a_refusal_is_a_problem_with_a_code(client: Any) -> None:
    refused = operation("forecasts", "show_forecast").sync(client=client, series="nobody-knows")
    assert (refused.status, refused.code) == (404, "unknown_series")
