"""An answer that is the same for every caller is made once, compressed forms included."""

from __future__ import annotations

import gzip
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from backports import zstd
from django.test import Client, RequestFactory

from monitor.web.api import api
from monitor.web.api.http.static_answer import StaticAnswer

DOCUMENT = "/api/v1/openapi.json"
UNPACK = {"gzip": gzip.decompress, "zstd": zstd.decompress}


def test_callers_that_arrive_together_wait_for_one_of_them() -> None:
    callers = 8
    arrived, made = threading.Barrier(callers, timeout=60), []

    def make() -> bytes:
        made.append(1)
        return b"x" * 5000

    answer = StaticAnswer(make, "text/plain")

    def ask(number: int) -> bytes:
        arrived.wait()
        encoding = ("gzip", "zstd", "")[number % 3]
        response = answer(RequestFactory().get("/", headers={"accept-encoding": encoding}))
        assert response.get("Content-Encoding", "") == encoding
        content = response.content
        return UNPACK[encoding](content) if encoding else content

    with ThreadPoolExecutor(callers) as threads:
        assert {*threads.map(ask, range(callers))} == {b"x" * 5000}
    assert made == [1]


@pytest.mark.django_db
@pytest.mark.parametrize("encoding", ["", "gzip", "zstd"])
def test_the_openapi_document_is_made_once_also_for_strangers(encoding: str) -> None:
    client = Client(headers={"accept-encoding": encoding})
    answer = client.get(DOCUMENT)
    assert (answer.status_code, answer.get("Content-Encoding", "")) == (200, encoding)
    content = UNPACK[encoding](answer.content) if encoding else answer.content
    assert json.loads(content)["paths"].keys() == api.document()["paths"].keys()
    assert api.document() is api.document()
    known = client.get(DOCUMENT, headers={"if-none-match": answer["ETag"]})
    assert (known.status_code, known.content) == (304, b"")
    assert client.head(DOCUMENT)["Content-Length"] == str(len(answer.content))


def test_another_method_is_refused_as_on_every_path(db: None) -> None:
    answer = Client(enforce_csrf_checks=True).post(DOCUMENT)
    assert (answer.status_code, answer["Allow"]) == (405, "GET, HEAD, OPTIONS")
    assert answer["Content-Type"] == "application/problem+json"
