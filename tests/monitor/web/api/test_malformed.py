"""Fuzz: malformed reports are refused with the field at fault, in bounded memory, and nothing is stored.

``GRIDCAST_FUZZ_BODIES`` sets the number of bodies: 200 by default, 10,000 in ``make fuzz``.
``GRIDCAST_FUZZ_SEED`` sets the seed.
"""

from __future__ import annotations

import io
import logging
import os
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.test import Client

from monitor.models import (
    ApiToken,
    DirtyHour,
    Metric,
    RawReport,
    Reporter,
    Run,
    Sample,
    Segment,
    Series,
    Usage,
)
from monitor.models.reporter import HOME
from monitor.models.token import REPORT
from monitor.web.api.http.envelope import MAX_BYTES
from tests.monitor.web.api.malformed import Malformed, drawn

BODIES = int(os.environ.get("GRIDCAST_FUZZ_BODIES", "200"))
SEED = int(os.environ.get("GRIDCAST_FUZZ_SEED", "1"))
PROCESS = Path("/proc/self")
MOST_BYTES = 8 * MAX_BYTES  # peak memory of a request: compressed, decompressed and parsed


@pytest.fixture
def client(db: None, settings: LazySettings, tmp_path: Path) -> Iterator[Client]:
    """A program with a token to report, on its own host; refusals are not logged."""
    settings.VAR_DIR = tmp_path
    home, _ = Reporter.objects.get_or_create(name=HOME)
    token = ApiToken.objects.issue(User.objects.create_superuser("root"), "program", [REPORT], home)
    logging.disable(logging.WARNING)
    yield Client(headers={"authorization": f"Bearer {token}"})
    logging.disable(logging.NOTSET)


def test_malformed_reports_are_refused_with_their_field_and_nothing_is_stored(
    circle: Series, client: Client, noon: datetime
) -> None:
    answers: Counter[int] = Counter()
    most_bytes = 0
    for number, malformed in enumerate(drawn(SEED, BODIES, noon)):
        answer, held_bytes = measured(client, malformed)
        answers[answer.status_code] += 1
        check(answer, f"seed {SEED}, number {number}: {malformed.what}", malformed.fields)
        assert held_bytes < MOST_BYTES, f"seed {SEED}, number {number}: {malformed.what}"
        most_bytes = max(most_bytes, held_bytes)
    print(f"seed {SEED}: {sorted(answers.items())}; {most_bytes / 2**20:.1f} MiB peak")
    stored = [
        kind for kind in (Run, RawReport, Sample, Segment, Metric, Usage, DirtyHour) if kind.objects.exists()
    ]
    assert stored == []


def measured(client: Client, malformed: Malformed) -> tuple[Any, int]:
    """Return the answer and by how much the memory of this process peaked."""
    PROCESS.joinpath("clear_refs").write_text("5", encoding="ascii")  # reset the peak
    before_bytes = kept_bytes("VmRSS")
    answer = send(client, malformed)
    return answer, kept_bytes("VmHWM") - before_bytes


def kept_bytes(field: str) -> int:
    for line in PROCESS.joinpath("status").read_text(encoding="ascii").splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"the kernel does not report {field}")


def send(client: Client, malformed: Malformed) -> Any:
    headers = {"content-encoding": malformed.encoding} if malformed.encoding else {}
    length = len(malformed.body) if malformed.length is None else malformed.length
    as_from_a_socket: dict[str, Any] = {
        "wsgi.input": io.BytesIO(malformed.body),
        "CONTENT_LENGTH": str(length),
    }
    return client.generic(
        "POST", "/api/v1/reports", malformed.body, malformed.content_type, headers=headers, **as_from_a_socket
    )


def check(answer: Any, body_name: str, fields: tuple[str, ...]) -> None:
    """Check that *answer* is a client error that names one of *fields*."""
    assert answer.status_code in {400, 413, 415, 422}, (
        f"{body_name}: {answer.status_code} {answer.content!r:.300}"
    )
    assert answer["content-type"] == "application/problem+json", body_name
    message = answer.json()
    assert message["detail"], body_name
    assert not any(receipt["accepted"] for receipt in message.get("receipts", ())), body_name
    if fields:
        assert any(field in message["detail"] for field in fields), f"{body_name}: {message['detail']}"
