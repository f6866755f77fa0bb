"""Raw reports: stored compressed as they arrived, so that they can be parsed again."""

from __future__ import annotations

from django.contrib.postgres.indexes import BrinIndex
from django.db import models

from monitor.core.compression import unpack
from monitor.models.run import Run
from reporters import report as wire


class RawReportQuerySet(models.QuerySet["RawReport"]):
    def of(self, run: Run) -> RawReport | None:
        """Return the report of *run*; None if the run has no stored report."""
        return self.filter(run=run, slot=run.slot).first()


class RawReport(models.Model):
    """The report of one run, byte for byte. The key contains the slot, as partitions require."""

    pk = models.CompositePrimaryKey("run_id", "slot")
    # No constraint: the transaction that writes a report has locked its run, so the run exists.
    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, db_constraint=False, db_index=False, related_name="raw_reports"
    )
    slot = models.DateTimeField()
    received_at = models.DateTimeField()
    packing = models.PositiveSmallIntegerField(
        help_text="compression format of the body (monitor.core.compression)"
    )
    packed = models.BinaryField()
    parsed_by = models.PositiveSmallIntegerField(
        db_default=1, help_text="version of the parser that made the samples"
    )

    objects = RawReportQuerySet.as_manager()

    class Meta:
        ordering = ["-received_at"]
        indexes = [BrinIndex(fields=["slot"], name="rawreport_slot_brin")]

    def __str__(self) -> str:
        return f"report of {self.run_id}"

    @property
    def body(self) -> bytes:
        """The JSON as it arrived."""
        return unpack(self.packing, bytes(self.packed))

    def parsed(self) -> wire.Report:
        return wire.from_json(self.body)
