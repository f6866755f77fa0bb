"""Reporters that send continuously and repeat each report until they have its receipt."""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from reporters import report as wire
from tests.monitor.builders import circle_report
from tests.waiting import eventually

START = datetime(2026, 1, 1, tzinfo=UTC)
MOST_AT_ONCE = 20
ANSWER_SECONDS = 20.0
RECEIPT_SECONDS = 120.0
PAUSE_SECONDS = 0.1  # after no answer, or 503


class Senders:
    """*series* threads, each of which sends reports of its own series, one by one or in batches.

    Attributes:
        acknowledged: by run, the reports whose senders have a receipt.
        answers: the number of answers by status; 0 stands for no answer.
        duplicates: the number of stored reports whose receipt had been lost.
        errors: answers that must not occur, whatever is killed.
    """

    def __init__(self, port: int, token: str, series: int, seed: int) -> None:
        self.acknowledged: dict[uuid.UUID, bytes] = {}
        self.answers: Counter[int] = Counter()
        self.duplicates = 0
        self.errors: list[str] = []
        self._port, self._token = port, token
        self._slots = [START] * series
        self._chances = [random.Random(f"{seed}-{number}") for number in range(series)]
        self._lock = threading.Lock()
        self._end = threading.Event()

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Send until the end of the block; batches begun by then still get their receipts."""
        self._end.clear()
        threads = [threading.Thread(target=self._send, args=(number,)) for number in range(len(self._slots))]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._end.set()
            for thread in threads:
                thread.join()

    def _send(self, number: int) -> None:
        while not self._end.is_set() and not self.errors:
            batch = [self._next(number) for _ in range(self._chances[number].choice([1, 1, 5, MOST_AT_ONCE]))]
            if not eventually(lambda batch=batch: self._has_receipts(batch), within_seconds=RECEIPT_SECONDS):  # type: ignore[misc]
                self.errors.append(f"no receipt in {RECEIPT_SECONDS:.0f} s")

    def _next(self, number: int) -> wire.Report:
        self._slots[number] += timedelta(minutes=1)
        return circle_report(self._slots[number], series=f"circle-{number}")

    def _has_receipts(self, batch: list[wire.Report]) -> bool:
        """Return whether all of *batch* were accepted; any other receipt is an error."""
        bodies = [wire.to_json(report) for report in batch]
        status, retry_after, body = self._answer(b"[" + b",".join(bodies) + b"]")
        with self._lock:
            self.answers[status] += 1
            if status not in {0, 200, 503} or (status == 503 and not retry_after):
                self.errors.append(f"{status}, Retry-After {retry_after!r}: {body!r:.500}")
        if status != 200:
            time.sleep(PAUSE_SECONDS)
            return bool(self.errors)
        with self._lock:
            receipts = json.loads(body)["receipts"]
            if [(receipt["run"], receipt["accepted"]) for receipt in receipts] != [
                (str(report.run), True) for report in batch
            ]:
                self.errors.append(f"receipts: {receipts!r:.500}")
            self.duplicates += sum(receipt["duplicate"] for receipt in receipts)
            self.acknowledged.update(zip((report.run for report in batch), bodies, strict=True))
            return True

    def _answer(self, body: bytes) -> tuple[int, str, bytes]:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=ANSWER_SECONDS)
        try:
            connection.request("POST", "/api/v1/reports", body, headers)
            answer = connection.getresponse()
            return answer.status, answer.headers.get("Retry-After", ""), answer.read()
        except (OSError, http.client.HTTPException):
            return 0, "", b""
        finally:
            connection.close()
