"""The API does what its OpenAPI document says: schemathesis, with all checks, over every operation.

``GRIDCAST_API_EXAMPLES`` sets the number of requests that are drawn for each operation.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import strategies as st
from pytest_django.live_server_helper import LiveServer
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema

from tests.by_night import by_night
from tests.monitor.web.api.example_grid import example_grid

RECORDS = "application/vnd.gridcast.records"
EXAMPLES = int(os.environ.get("GRIDCAST_API_EXAMPLES", "1"))
SEED = int(os.environ.get("GRIDCAST_API_SEED", "1"))
# What no schema can say is 422 or 409, too: a window that ends before it starts, a site without a series, ...
ACCEPTED = ["2xx", "3xx", "401", "403", "404", "409", "422", "429"]


# The API takes times of the years 1900 to 2200.
schemathesis.openapi.format(
    "date-time",
    st.integers(-2_000_000_000, 7_000_000_000).map(
        lambda seconds: datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
    ),
)


@schemathesis.serializer(RECORDS)
def serialize_records(_: Any, value: Any) -> bytes:
    return value if isinstance(value, bytes) else repr(value).encode()


@schemathesis.check
def the_code_is_declared(_: Any, response: Any, case: Any) -> None:
    """A problem has one of the codes that the document lists for its status."""
    if response.headers.get("content-type", [""])[0].startswith("application/problem+json"):
        declared = case.operation.definition.raw["responses"].get(str(response.status_code), {})
        problem = response.json()
        assert problem["code"] in [*declared.get("x-codes", ()), "method_not_allowed"], problem


@schemathesis.check
def the_schema_does_not_refuse_what_it_allows(_: Any, response: Any, case: Any) -> None:
    """Data that the document allows are not refused for their types, lengths or names."""
    is_positive = case.meta is not None and case.meta.generation.mode.is_positive
    if is_positive and response.status_code == 422:
        assert "errors" not in response.json(), response.json()["detail"]


@pytest.fixture
def token(live_server: LiveServer) -> Iterator[str]:
    logging.disable(logging.WARNING)
    yield example_grid()
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize(
    ("phases", "examples"),
    [("examples fuzzing stateful", EXAMPLES), by_night("coverage", 1)],
)
def test_every_operation_does_what_the_document_says(
    live_server: LiveServer, token: str, phases: str, examples: int
) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    config = SchemathesisConfig.from_dict(
        {
            "headers": headers,
            "seed": SEED,
            "continue-on-failure": True,
            "generation": {"max-examples": examples, "allow-x00": False, "database": "none"},
            "checks": {"positive_data_acceptance": {"expected-statuses": ACCEPTED}},
            # Each outcome of a list has an error of its own, and the others count: the answer is 200.
            "operations": [
                {
                    "include-operation-id": "report_outcomes",
                    "checks": {"negative_data_rejection": {"enabled": False}},
                }
            ],
            "phases": {
                name: {"enabled": name in phases.split()}
                for name in ("examples", "coverage", "fuzzing", "stateful")
            },
        }
    )
    document = f"{live_server.url}/api/v1/openapi.json"
    httpx.get(document, timeout=600.0)  # made by the first request; schemathesis waits ten seconds
    schema = schemathesis.openapi.from_url(document, config=config, headers=headers)
    failures, requests = run(schema)
    print(f"{requests} requests")
    assert not failures, "\n\n".join(sorted(failures))
    assert requests > 50


def run(schema: Any) -> tuple[set[str], int]:
    """Return descriptions of the failures, and the number of requests."""
    failures: set[str] = set()
    requests = 0
    for event in from_schema(schema).execute():
        if isinstance(event, events.ScenarioFinished):
            requests += len(event.recorder.interactions)
            for key, checks in event.recorder.checks.items():
                failures |= {
                    f"{event.recorder.label}: {check.name}: {check.failure_info.failure}\n"
                    f"  {event.recorder.cases[key].value.as_curl_command()}"
                    for check in checks
                    if check.failure_info is not None and not _is_of_test_server(event.recorder, key)
                }
        elif isinstance(event, events.NonFatalError | events.FatalError):
            failures.add(f"{event}")
    return failures, requests


def _is_of_test_server(recorder: Any, key: str) -> bool:
    """Return whether the server of the tests refused the request line, which has another limit than ours."""
    response = recorder.interactions[key].response
    return (
        response is not None and response.status_code == 414 and b"<html" in (response.content or b"").lower()
    )
