"""Mail about accounts is stored with what it tells of, and sent by the control worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.conf import settings as configured
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from monitor import tasks
from monitor.core.egress.backoff import pause_after
from monitor.models import AccountMail, Identity
from monitor.web.accounts import identities, mail
from tests.monitor.receivers import HANGS, REFUSES, Mailbox, mailbox
from tests.monitor.web.accounts.identities import identity_of
from tests.monitor.web.accounts.logins import log_in
from tests.monitor.web.accounts.provider.test_waiting_logins import give_app
from tests.monitor.web.pages import builders

pytestmark = pytest.mark.django_db
Browsers = Callable[[], Client]
STEP = "/login/second-factor/"


@pytest.fixture
def server(settings: Settings) -> Iterator[Mailbox]:
    settings.EMAIL_TIMEOUT = 0.5
    with mailbox() as server:
        yield server


def users_with_mail(number: int, *, since: datetime) -> list[User]:
    """Return users whose identities end soon, all at once, as after an upgrade; each has been sent a mail."""
    users = [builders.user(f"user-{each}", email=f"user-{each}@example.org") for each in range(number)]
    for user in users:
        identity_of(user, "viewer", valid_until=since + timedelta(days=1))
    assert identities.warn_ahead(since) == number
    return users


def recipients(server: Mailbox) -> list[str]:
    return sorted(address.strip("<>") for addresses, _ in server.mails for address in addresses)


def test_a_wrong_code_asks_no_mail_server(browser_elsewhere: Browsers, reader: User, server: Mailbox) -> None:
    """The request holds the factors of the user: its owner would wait for the mail server as well."""
    give_app(reader)
    User.objects.filter(pk=reader.pk).update(email="ada@example.org")
    thief = browser_elsewhere()
    log_in(thief, reader)
    thief.post(STEP, {"code": "000000"})
    assert (server.mails, AccountMail.objects.get().user) == ([], reader)
    tasks.deliver_account_mail()
    assert recipients(server) == ["ada@example.org"]
    assert not AccountMail.objects.exists()


def test_the_task_is_in_the_schedule() -> None:
    scheduled = {entry["task"] for entry in configured.CELERY_BEAT_SCHEDULE.values()}
    assert tasks.deliver_account_mail.name in scheduled


def test_all_mails_of_a_step_are_sent_once(server: Mailbox) -> None:
    now = timezone.now()
    users = users_with_mail(5, since=now)
    assert [mail.deliver_due(now), mail.deliver_due(now)] == [5, 0]
    assert recipients(server) == sorted(user.email for user in users)


def test_a_mail_server_that_hangs_is_asked_once_and_all_mails_wait(server: Mailbox) -> None:
    """Fifty tries one after the other would keep the worker for minutes, each time."""
    now = timezone.now()
    users = users_with_mail(50, since=now)
    server.mode = HANGS
    assert [mail.deliver_due(now), mail.deliver_due(now)] == [1, 0]
    later = now + pause_after(1)
    assert mail.deliver_due(later) == 1, "again after the pause, and the next pause is longer"
    server.mode = "accepts"
    assert mail.deliver_due(later + pause_after(1)) == 0
    assert mail.deliver_due(later + pause_after(2)) == 50
    assert recipients(server) == sorted(user.email for user in users)


def test_a_recipient_that_is_refused_for_good_holds_back_no_other(server: Mailbox) -> None:
    now = timezone.now()
    users_with_mail(3, since=now)
    server.mode = REFUSES
    assert mail.deliver_due(now) == 3
    assert not AccountMail.objects.exists(), "the pages tell these users"
    assert Identity.objects.filter(warned_at=None).count() == 0


def test_a_mail_that_cannot_be_written_holds_back_no_other(server: Mailbox) -> None:
    now = timezone.now()
    users = users_with_mail(3, since=now)
    AccountMail.objects.filter(user=users[0]).update(subject="two\nlines")
    assert mail.deliver_due(now) == 3
    assert recipients(server) == sorted(user.email for user in users[1:])


def test_a_mail_goes_to_the_present_address_and_not_after_its_use(server: Mailbox) -> None:
    now = timezone.now()
    first, second = users_with_mail(2, since=now)
    User.objects.filter(pk=first.pk).update(email="new@example.org")
    User.objects.filter(pk=second.pk).update(email="")
    mail.deliver_due(now)
    assert recipients(server) == ["new@example.org"]
    mail.enqueue(first, "Late", "", now, until=now + timedelta(hours=1))
    assert mail.deliver_due(now + timedelta(hours=2)) == 0
    assert not AccountMail.objects.exists()


def test_a_mail_is_tried_every_hour_however_often_it_has_failed(server: Mailbox) -> None:
    now = timezone.now()
    users_with_mail(1, since=now)
    server.mode = HANGS
    AccountMail.objects.update(attempts=30_000)
    assert mail.deliver_due(now) == 1
    assert AccountMail.objects.get().due_at == now + timedelta(hours=1)


def test_a_user_that_logs_in_while_others_are_warned_is_not_warned(
    server: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its next end would come without a warning."""
    now, enqueue = timezone.now(), mail.enqueue
    for name in ("ada", "bob"):
        identity_of(builders.user(name, email=f"{name}@example.org"), "viewer", valid_until=now)
    Identity.objects.update(valid_until=now + timedelta(days=1))

    def log_the_other_in(user: User, *args: Any, **options: Any) -> None:
        other = Identity.objects.exclude(user=user).get()
        identities.admit(other.account, other.issuer, other.subject, ["viewer"], now)
        enqueue(user, *args, **options)

    monkeypatch.setattr(mail, "enqueue", log_the_other_in)
    assert identities.warn_ahead(now) == 1
    assert AccountMail.objects.count() == Identity.objects.filter(warned_at=None).count() == 1
