"""Raw reports: kept as they came, compressed, so that they can be parsed again."""

from __future__ import annotations

from django.contrib.postgres.indexes import BrinIndex
from django.db import models

from monitor.compression import unpack
from monitor.models.run import Run
from reporters import report as wire


class RawReportQuerySet(models.QuerySet["RawReport"]):
    def of(self, run: Run) -> RawReport | None:
        """The report of *run*, if it has one."""
        return self.filter(run=run, slot=run.slot).first()


class RawReport(models.Model):
    """The report of one run, byte for byte. The key contains the run's slot, as partitions ask."""

    pk = models.CompositePrimaryKey("run_id", "slot")
    # Reports are written in the transaction that has locked their run: the database need not look again.
    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, db_constraint=False, db_index=False, related_name="raw_reports"
    )
    slot = models.DateTimeField()
    received_at = models.DateTimeField()
    packing = models.PositiveSmallIntegerField(help_text="how the body was packed: monitor.compression")
    packed = models.BinaryField()
    parsed_by = models.PositiveSmallIntegerField(
        db_default=1, help_text="which version of the parser its run's samples are from"
    )

    objects = RawReportQuerySet.as_manager()

    class Meta:
        ordering = ["-received_at"]
        indexes = [BrinIndex(fields=["slot"], name="rawreport_slot_brin")]

    def __str__(self) -> str:
        return f"report of {self.run_id}"

    @property
    def body(self) -> bytes:
        """The JSON as it came."""
        return unpack(self.packing, bytes(self.packed))

    def parsed(self) -> wire.Report:
        return wire.from_json(self.body)
