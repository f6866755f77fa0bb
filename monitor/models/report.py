"""Raw reports: kept as they came, compressed, so that they can be parsed again."""

from __future__ import annotations

import gzip

from django.db import models

from monitor.models.run import Run
from reporters import report as wire


class RawReport(models.Model):
    """The report of one run, byte for byte."""

    run = models.OneToOneField(Run, on_delete=models.CASCADE, primary_key=True, related_name="raw_report")
    received_at = models.DateTimeField()
    body_gzip = models.BinaryField()

    class Meta:
        ordering = ["-received_at"]

    def __str__(self) -> str:
        return f"report of {self.run_id}"

    @property
    def body(self) -> bytes:
        """The JSON as it came."""
        return gzip.decompress(bytes(self.body_gzip))

    def parsed(self) -> wire.Report:
        return wire.from_json(self.body)

    @staticmethod
    def compress(body: bytes) -> bytes:
        return gzip.compress(body, mtime=0)
