"""Chains: the sequences of records in reporters' spools, as far as the depot has received them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.contrib.postgres.indexes import BrinIndex
from django.db import models

from monitor.core.compression import unpack
from monitor.models.reporter import Reporter
from monitor.models.series import Series

if TYPE_CHECKING:
    from datetime import datetime

    from monitor.models.run import Run

_COMMITTED_WITHIN = timedelta(seconds=30)  # from the arrival of a report until its record is written


class Chain(models.Model):
    """A hash chain of a reporter: the records that one process of it has spooled.

    *declared_next* and *declared_head* are what the reporter said last: the sequence number that its next
    record will have, and the hash of its last record. Records below *declared_next* that the depot lacks are
    still in the spool, or missing.
    """

    reporter = models.ForeignKey(Reporter, on_delete=models.CASCADE, related_name="chains")
    uuid = models.UUIDField(unique=True)
    first_seen_at = models.DateTimeField()
    declared_at = models.DateTimeField(null=True)
    declared_next = models.PositiveBigIntegerField(default=0)
    declared_head = models.CharField(max_length=64, blank=True)

    class Meta:
        ordering = ["first_seen_at", "pk"]

    def __str__(self) -> str:
        return f"{self.uuid} of {self.reporter}"


class Disposition(models.IntegerChoices):
    """What became of a record."""

    STORED = 1, "stored: the first report of its run"
    DUPLICATE = 2, "duplicate: the same report was stored before"
    CONFLICT = 3, "conflict: another report of the run was stored before; kept beside"
    REFUSED = 4, "refused: the depot can never store it"
    NOTE = 5, "a note of the reporter: no report"


class ChainRecordQuerySet(models.QuerySet["ChainRecord"]):
    def of(self, run: Run, received_at: datetime) -> ChainRecord | None:
        """Return the record with the stored report of *run*, which was received at *received_at*.

        The time bounds the search: the run of a record has no index.
        """
        committed = (received_at - timedelta(seconds=1), received_at + _COMMITTED_WITHIN)
        stored = self.filter(run=run.pk, received_at__range=committed, disposition=Disposition.STORED)
        return stored.select_related("chain").first()


class ChainRecord(models.Model):
    """A record that the depot has received; written in the transaction that stores its report."""

    pk = models.CompositePrimaryKey("chain_id", "sequence")
    chain = models.ForeignKey(Chain, on_delete=models.CASCADE, db_index=False, related_name="records")
    sequence = models.PositiveBigIntegerField()
    kind = models.CharField(max_length=10)
    hash = models.BinaryField(max_length=32)
    disposition = models.PositiveSmallIntegerField(choices=Disposition)
    run = models.UUIDField(null=True)
    slot = models.DateTimeField(null=True)
    received_at = models.DateTimeField()
    text = models.TextField(blank=True, help_text="the body of a note, or why a report was refused")

    objects = ChainRecordQuerySet.as_manager()

    class Meta:
        ordering = ["chain", "sequence"]
        indexes = [
            BrinIndex(fields=["received_at"], name="chainrecord_received_brin"),
            models.Index(
                fields=["received_at"], condition=models.Q(kind="dropped"), name="chainrecord_dropped"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.chain_id}:{self.sequence} {self.kind}"

    @property
    def digest(self) -> str:
        """The hash of the record, in hex."""
        return bytes(self.hash).hex()


class ConflictingReportQuerySet(models.QuerySet["ConflictingReport"]):
    def of(self, run: Run) -> ConflictingReportQuerySet:
        """Return the conflicting reports of *run*, oldest first."""
        return self.filter(run=run.pk).order_by("received_at", "pk")


class ConflictingReport(models.Model):
    """A report of a run that already had a different report: kept beside, never shown as the run's result."""

    run = models.UUIDField()
    series = models.ForeignKey(Series, on_delete=models.CASCADE, related_name="conflicting_reports")
    slot = models.DateTimeField()
    reporter = models.CharField(max_length=200, help_text="the reporter that the report names")
    received_at = models.DateTimeField()
    sha256 = models.BinaryField(max_length=32, help_text="of the body")
    packing = models.PositiveSmallIntegerField(
        help_text="compression format of the body (monitor.core.compression)"
    )
    packed = models.BinaryField()

    objects = ConflictingReportQuerySet.as_manager()

    class Meta:
        ordering = ["-received_at"]
        constraints = [models.UniqueConstraint(fields=["run", "sha256"], name="conflicting_report_once")]

    def __str__(self) -> str:
        return f"conflicting report of {self.run}"

    @property
    def body(self) -> bytes:
        """The JSON as it arrived."""
        return unpack(self.packing, bytes(self.packed))

    @property
    def digest(self) -> str:
        """The SHA-256 of the body, in hex."""
        return bytes(self.sha256).hex()


class ConflictCount(models.Model):
    """How many reports of *reporter* conflicted with a stored one, ever; also those that were not kept."""

    reporter = models.CharField(primary_key=True, max_length=200, help_text="the reporter that they name")
    total = models.PositiveBigIntegerField()
    last_at = models.DateTimeField(help_text="when the last one was received")

    class Meta:
        ordering = ["reporter"]

    def __str__(self) -> str:
        return f"{self.total} conflicting reports of {self.reporter}"
