"""``manage.py access``: the roles of users, wherever they come from, and what is named wrongly."""

from __future__ import annotations

from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone

from monitor.depot.access import roles
from monitor.depot.access.roles import Grant
from monitor.models import ApiToken, Site
from monitor.models.role import UserRole
from monitor.web.accounts import identities
from tests.monitor.web.accounts.identities import identity_of
from tests.monitor.web.pages import builders

pytestmark = pytest.mark.django_db


def _printed(*arguments: str) -> str:
    printed = StringIO()
    call_command(*arguments, stdout=printed)
    return printed.getvalue()


def test_the_list_has_roles_by_identities_suspensions_and_disabled_accounts() -> None:
    for name in ("ada", "bob", "cleo", "dora"):
        builders.user(name)
    by_name = {user.get_username(): user for user in User.objects.all()}
    identity_of(by_name["ada"], "operator", "site_admin:ncsa")
    identities.suspend(identity_of(by_name["bob"], "viewer"), "no group", timezone.now())
    roles.grant(by_name["bob"], Grant(UserRole.SCHEDULER))
    User.objects.filter(username="dora").update(is_active=False)
    assert _printed("access", "list").splitlines() == [
        "ada  none granted here; by the identity ada-1: operator, site_admin:ncsa",
        "bob  scheduler; by the identity bob-1: viewer (suspended: no group)",
        "cleo  none: reads as a viewer",
        "dora  none: reads as a viewer (disabled)",
    ]
    assert _printed("access", "list", "bob").startswith("bob  scheduler;")


def test_a_site_admin_is_named_alike_by_both_commands() -> None:
    Site.objects.create(name="ncsa")
    builders.user("ada")
    assert _printed("access", "grant", "ada", "site_admin:ncsa") == "ada  site_admin:ncsa\n"
    assert _printed("access", "revoke", "ada", "site_admin", "--site", "ncsa").endswith("reads as a viewer\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ada", "site_admin"], r"name the site \(by command: site_admin:SITE\)"),
        (["ada", "site_admin:nowhere"], "there is no site 'nowhere'; there are: anl, ncsa"),
        (["ada", "site_admin:ncsa", "--site", "anl"], "the site is named twice"),
        (["ada", "boss"], "expected one of the roles viewer, scheduler"),
        (["Ada", "viewer"], "there is no user 'Ada', but 'ada': names differ by case"),
        (["bob", "viewer"], "manage.py access list shows all users"),
    ],
)
def test_a_grant_that_is_named_wrongly_says_how_to_name_it(arguments: list[str], message: str) -> None:
    for name in ("ncsa", "anl"):
        Site.objects.create(name=name)
    builders.user("ada")
    with pytest.raises(CommandError, match=message):
        call_command("access", "grant", *arguments)


def test_no_token_is_issued_that_could_not_work() -> None:
    user = builders.user("ada")
    User.objects.filter(pk=user.pk).update(is_active=False)
    with pytest.raises(
        CommandError, match="would not be valid now: the account is disabled: enable it first"
    ):
        call_command("token", "issue", "ada")
    User.objects.filter(pk=user.pk).update(is_active=True)
    identities.suspend(identity_of(user, "viewer"), "no group", timezone.now())
    with pytest.raises(CommandError, match="no identity of the account is in force: grant a role first"):
        call_command("token", "issue", "ada")
    assert not ApiToken.objects.exists()
