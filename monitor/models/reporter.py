"""Reporters: the processes that run series, and the credentials and the state of those at sites."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models

from monitor.models.natural_order import sort_name_field
from monitor.models.role import ANY_IDENTITY, acting
from monitor.models.series import Series
from monitor.models.site import Site, may_manage_everywhere, may_manage_somewhere
from monitor.models.visibility import has_row, sees_all

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

HOME = "home"
MAX_AGENT_SERIES = 2_000  # in one assignment
SEND_REPORTS = "monitor.add_rawreport"
MANAGE_REPORTERS = "monitor.manage_reporters"  # permission to create, enrol and revoke reporters


class ReporterQuerySet(models.QuerySet["Reporter"]):
    def visible_to(self, user: AbstractBaseUser | AnonymousUser) -> ReporterQuerySet:
        """Return the reporters of the series that *user* may see."""
        if sees_all(user):
            return self
        return self.filter(has_row(Series.objects.visible_to(user).filter(reporter=models.OuterRef("pk"))))

    def manageable_or_visible_to(self, user: AbstractBaseUser | AnonymousUser) -> ReporterQuerySet:
        """Return the reporters that *user* may manage, and those of ``visible_to``."""
        if sees_all(user) or may_manage_everywhere(user, MANAGE_REPORTERS):
            return self
        is_either = models.Q(pk__in=self.visible_to(user).order_by().values("pk"))
        if may_manage_somewhere(user, MANAGE_REPORTERS):
            is_either |= models.Q(pk__in=self.manageable_by(user).order_by().values("pk"))
        return self.filter(is_either)

    def manageable_by(
        self, user: AbstractBaseUser | AnonymousUser, permission: str = MANAGE_REPORTERS
    ) -> ReporterQuerySet:
        """Return the reporters that *user* may enrol and revoke; of a site admin, those at its sites."""
        if may_manage_everywhere(user, permission):
            return self
        return self.filter(site__in=Site.objects.manageable_by(user, permission).order_by().values("pk"))

    def reportable_by(self, user: AbstractBaseUser | AnonymousUser) -> ReporterQuerySet:
        """Return the reporters whose reports tokens of *user* may send, as ``ApiToken.objects.senders``."""
        return self.manageable_by(user, SEND_REPORTS)

    def remote(self) -> ReporterQuerySet:
        return self.filter(site__isnull=False)

    def unassigned(self) -> ReporterQuerySet:
        """Return the remote reporters whose agents have not yet got an assignment: they run nothing."""
        return self.remote().filter(assignments=None)

    def workers(self) -> ReporterQuerySet:
        """Return the Celery workers."""
        return self.filter(site=None)


class Reporter(models.Model):
    """A process that runs series, at most *capacity* runs at the same time.

    A reporter with a *site* is a remote reporter: an agent at that site, which exchanges with the server over
    HTTPS. A reporter without a site is a Celery worker.
    """

    name = models.SlugField(unique=True)
    sort_name = sort_name_field()
    capacity = models.PositiveSmallIntegerField(default=4)
    site = models.ForeignKey(
        "monitor.Site",
        models.PROTECT,
        null=True,
        blank=True,
        related_name="reporters",
        help_text="the site at which it runs as an agent; empty: a Celery worker",
    )
    paced_until = models.DateTimeField(
        null=True,
        editable=False,
        help_text="when its records without a stored report would have arrived at the pace that is allowed",
    )

    objects = ReporterQuerySet.as_manager()

    class Meta:
        ordering = ["sort_name"]
        permissions = [("manage_reporters", "Can create, enrol and revoke reporters")]

    def __str__(self) -> str:
        return self.name

    @property
    def is_remote(self) -> bool:
        return self.site_id is not None

    @property
    def component(self) -> str:
        """The name under which the reporter sends heartbeats."""
        return f"reporter.{self.name}"

    @property
    def queue(self) -> str:
        """The Celery queue that carries the runs of this reporter."""
        return f"reporter.{self.name}"


class ReporterKeyQuerySet(models.QuerySet["ReporterKey"]):
    def active(self) -> ReporterKeyQuerySet:
        return self.filter(revoked_at=None)


class ReporterKey(models.Model):
    """The public key of a remote reporter. The private key never leaves the site.

    A reporter has at most one key that is not revoked: an enrolment revokes the earlier key.
    """

    reporter = models.ForeignKey(Reporter, on_delete=models.CASCADE, related_name="keys")
    method = models.CharField(max_length=20, help_text="how it signs, a module of reporters.remote.signing")
    public_key = models.TextField(help_text="as the method writes it")
    fingerprint = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the public key, in hex")
    hostname = models.CharField(max_length=253, blank=True, help_text="the host that enrolled")
    enrolled_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    revoked_by = models.CharField(max_length=150, blank=True, help_text="user name, or the reason")
    paced_until = models.DateTimeField(
        null=True, blank=True, help_text="when its exchanges would have been made at the pace that is allowed"
    )

    objects = ReporterKeyQuerySet.as_manager()

    class Meta:
        ordering = ["-enrolled_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["reporter"], condition=models.Q(revoked_at=None), name="reporter_has_one_active_key"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.reporter} {self.fingerprint[:12]}"


class EnrolmentCode(models.Model):
    """A code with which an agent enrols as *reporter*, once. Only the hash of the code is stored.

    It is valid while *created_by* may manage the reporter; null: a command made it.
    """

    reporter = models.ForeignKey(Reporter, on_delete=models.CASCADE, related_name="enrolment_codes")
    sha256 = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField()
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    key = models.ForeignKey(
        ReporterKey, on_delete=models.SET_NULL, null=True, help_text="the key that was enrolled with it"
    )

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"enrolment code of {self.reporter}, until {self.expires_at:%Y-%m-%d %H:%M:%S}"

    def is_permitted(self) -> bool:
        """Return whether the user that made the code may enrol its reporter now."""
        by = self.created_by
        if by is None:
            return True
        is_admitted = acting(by, ANY_IDENTITY) is not None
        return is_admitted and Reporter.objects.manageable_by(by).filter(pk=self.reporter_id).exists()


class EnrolmentAttempt(models.Model):
    """An enrolment with an invalid code: failed attempts are limited, by address and in total."""

    at = models.DateTimeField(db_index=True)
    address = models.CharField(max_length=50, help_text="of the client: an IPv4 address, or an IPv6 /64")

    class Meta:
        ordering = ["-at"]

    def __str__(self) -> str:
        return f"{self.address} at {self.at:%Y-%m-%d %H:%M:%S}"


class ReporterAssignment(models.Model):
    """A version of the assignment of a remote reporter; the newest version is in force."""

    reporter = models.ForeignKey(Reporter, on_delete=models.CASCADE, related_name="assignments")
    version = models.PositiveBigIntegerField(help_text="rises with every change")
    document = models.TextField(help_text="the JSON that is signed and sent")
    content_sha256 = models.CharField(
        max_length=64, help_text="of the document without its version and its time"
    )
    issued_at = models.DateTimeField()

    class Meta:
        ordering = ["-version"]
        constraints = [
            models.UniqueConstraint(fields=["reporter", "version"], name="assignment_version_once"),
        ]

    def __str__(self) -> str:
        return f"assignment {self.version} of {self.reporter}"


class PolicyStatus(models.TextChoices):
    """What a remote reporter said of its site policy."""

    ABSENT = "absent", "no policy: everything assigned may run"
    IN_FORCE = "in_force", "in force"
    UNREADABLE = "unreadable", "unreadable: nothing runs"


class ReporterStatus(models.Model):
    """What a remote reporter said of itself at its last exchange."""

    reporter = models.OneToOneField(
        Reporter, on_delete=models.CASCADE, primary_key=True, related_name="status"
    )
    seen_at = models.DateTimeField(help_text="time of the last exchange, by the server's clock")
    started_at = models.DateTimeField(help_text="when the agent started, by its own clock")
    hostname = models.CharField(max_length=253)
    archive_sha256 = models.CharField(max_length=64, blank=True, help_text="identifies the version")
    version = models.CharField(max_length=50, blank=True)
    python = models.CharField(max_length=50, blank=True)
    assignment_version = models.PositiveBigIntegerField(default=0, help_text="in force at the site")
    assignment_error = models.TextField(blank=True, help_text="why the newest assignment was refused")
    policy_status = models.CharField(max_length=10, choices=PolicyStatus, default=PolicyStatus.ABSENT)
    policy_sha256 = models.CharField(max_length=64, blank=True)
    policy_error = models.TextField(blank=True)
    policy_summary = models.JSONField(
        default=dict, help_text="what the policy says, as far as it is disclosed"
    )
    pending_approvals = models.PositiveIntegerField(default=0)
    spool_records = models.PositiveBigIntegerField(default=0)
    spool_bytes = models.PositiveBigIntegerField(default=0)
    spool_oldest_at = models.DateTimeField(null=True)
    dropped_records = models.PositiveBigIntegerField(default=0, help_text="dropped by the agent, ever")
    in_flight = models.PositiveIntegerField(default=0)
    clock_offset_seconds = models.FloatField(null=True, help_text="server's clock minus the agent's")
    clock_bound_seconds = models.FloatField(null=True, help_text="the largest error of the offset")
    messages = models.JSONField(default=list, help_text="the newest messages of the agent, oldest first")

    class Meta:
        verbose_name_plural = "reporter statuses"

    def __str__(self) -> str:
        return f"{self.reporter_id} at {self.seen_at:%Y-%m-%d %H:%M:%S}"

    @property
    def oldest_record_at(self) -> datetime | None:
        """When the oldest spooled record was written, by the server's clock; None if the spool was empty."""
        if self.spool_oldest_at is None:
            return None
        try:
            return self.spool_oldest_at + timedelta(seconds=self.clock_offset_seconds or 0.0)
        except (OverflowError, ValueError):  # an offset of centuries, or no number
            return self.spool_oldest_at

    @property
    def lag_seconds(self) -> float:
        """The age of the oldest spooled record at the last exchange; 0 if the spool was empty."""
        oldest_at = self.oldest_record_at
        return max((self.seen_at - oldest_at).total_seconds(), 0.0) if oldest_at else 0.0
