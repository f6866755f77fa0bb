"""Whatever is sent that is no report: the answer says what is wrong, memory stays bounded, nothing is stored.

500 bodies here; ``make fuzz`` has 10,000, others each time. GRIDCAST_FUZZ_BODIES says how many,
GRIDCAST_FUZZ_SEED which.
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

from monitor.api.http.envelope import MAX_BYTES
from monitor.models import ApiToken, DirtyHour, Metric, RawReport, Run, Sample, Segment, Series, Usage
from monitor.models.token import REPORT
from tests.monitor.api.malformed import Malformed, drawn

BODIES = int(os.environ.get("GRIDCAST_FUZZ_BODIES", "500"))
SEED = int(os.environ.get("GRIDCAST_FUZZ_SEED", "1"))
PROCESS = Path("/proc/self")
MOST_BYTES = 8 * MAX_BYTES  # held at once, whatever is sent: as it came, unpacked, and what is made of it


@pytest.fixture
def client(db: None, settings: LazySettings, tmp_path: Path) -> Iterator[Client]:
    """A program whose token may report, on a host of its own. What is refused is no news for the log."""
    settings.VAR_DIR = tmp_path
    token = ApiToken.objects.issue(User.objects.create_superuser("root"), "program", [REPORT])
    logging.disable(logging.WARNING)
    yield Client(headers={"authorization": f"Bearer {token}"})
    logging.disable(logging.NOTSET)


def test_what_is_no_report_is_refused_with_its_field_and_leaves_no_trace(
    circle: Series, client: Client, noon: datetime
) -> None:
    answers: Counter[int] = Counter()
    most_bytes = 0
    for number, one in enumerate(drawn(SEED, BODIES, noon)):
        answer, held_bytes = measured(client, one)
        answers[answer.status_code] += 1
        check(answer, f"seed {SEED}, number {number}: {one.what}", one.fields)
        assert held_bytes < MOST_BYTES, f"seed {SEED}, number {number}: {one.what}"
        most_bytes = max(most_bytes, held_bytes)
    print(f"seed {SEED}: {sorted(answers.items())}; {most_bytes / 2**20:.1f} MiB at most for one")
    stored = [
        kind for kind in (Run, RawReport, Sample, Segment, Metric, Usage, DirtyHour) if kind.objects.exists()
    ]
    assert stored == []


def measured(client: Client, one: Malformed) -> tuple[Any, int]:
    """The answer, and how much more memory this process held at once for it."""
    PROCESS.joinpath("clear_refs").write_text("5", encoding="ascii")  # the most is counted from here
    before_bytes = kept_bytes("VmRSS")
    answer = send(client, one)
    return answer, kept_bytes("VmHWM") - before_bytes


def kept_bytes(which: str) -> int:
    for line in PROCESS.joinpath("status").read_text(encoding="ascii").splitlines():
        if line.startswith(which):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"the kernel does not tell {which}")


def send(client: Client, one: Malformed) -> Any:
    headers = {"content-encoding": one.encoding} if one.encoding else {}
    length = len(one.body) if one.length is None else one.length
    as_from_a_socket: dict[str, Any] = {"wsgi.input": io.BytesIO(one.body), "CONTENT_LENGTH": str(length)}
    return client.generic(
        "POST", "/api/v1/reports", one.body, one.content_type, headers=headers, **as_from_a_socket
    )


def check(answer: Any, which: str, fields: tuple[str, ...]) -> None:
    """That *answer* is a problem of who asks, and names one of *fields*."""
    assert answer.status_code in {400, 413, 415, 422}, (
        f"{which}: {answer.status_code} {answer.content!r:.300}"
    )
    assert answer["content-type"] == "application/problem+json", which
    said = answer.json()
    assert said["detail"], which
    assert not any(receipt["accepted"] for receipt in said.get("receipts", ())), which
    if fields:
        assert any(field in said["detail"] for field in fields), f"{which}: {said['detail']}"
