"""What a page can do, the API can do: each form of the pages has its operation, or a reason why not.

A new form fails here until it is in the table.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.monitor.depot.access.decisions import ADMIN, OPERATIONS, PAGES


class Without(str):
    """Why a form has no operation."""


SESSION = Without("a session is of a browser; programs have tokens")
BROWSER = Without("a cookie of this browser; the API answers in UTC, with the filters that the caller names")
PASSWORD = Without("a password or second factor is entered where it is checked, by its owner")
PROVIDER = Without("a step between a browser and the identity provider")
ROLES = Without(
    "a token that could grant roles could be used to gain rights: administrators do, or manage.py"
)
SECRET = Without("a random text that the server does not keep: a program makes its own")
RULE = ("PUT /grid/alerts/{name}", "DELETE /grid/alerts/{name}")
SERIES = ("PUT /grid/series/{name}", "DELETE /grid/series/{name}")
SUITE = ("PUT /grid/suites/{name}", "DELETE /grid/suites/{name}")
SITE = ("PUT /grid/sites/{name}", "DELETE /grid/sites/{name}")
RESOURCE = ("PUT /grid/resources/{name}", "DELETE /grid/resources/{name}")
SIGNATURE = ("POST /failures/signatures",)
WINDOWS = ("POST /maintenance", "PATCH /maintenance/{window}", "DELETE /maintenance/{window}")

Counterpart = tuple[str, ...] | Without

FORMS: Mapping[str, Counterpart] = {
    **{route: ROLES for route, (_, sent) in PAGES.items() if route.startswith("access/") and sent},
    "account/": Without("it has the forms of other pages"),
    "account/app/": PASSWORD,
    "account/app/remove/": PASSWORD,
    "account/confirm/code/": PASSWORD,
    "account/confirm/passkey/": PASSWORD,
    "account/confirm/password/": PASSWORD,
    "account/connect/": PROVIDER,
    "account/confirm/provider/": PROVIDER,
    "account/identities/<int:pk>/disconnect/": PROVIDER,
    "login/sso/backchannel-logout/": PROVIDER,
    "account/defaults/": BROWSER,
    "account/passkeys/<int:pk>/remove/": PASSWORD,
    "account/passkeys/<int:pk>/rename/": PASSWORD,
    "account/passkeys/add/": PASSWORD,
    "account/password/": PASSWORD,
    "account/recovery-codes/": PASSWORD,
    "account/recovery-codes/download/": PASSWORD,
    "account/recovery-codes/new/": PASSWORD,
    "account/second-factor/": PASSWORD,
    "account/sessions/end/": SESSION,
    "account/time-zone/": BROWSER,
    "account/tokens/": ("POST /tokens",),
    "account/tokens/<int:pk>/revoke/": ("DELETE /tokens/{token}",),
    "account/tokens/<int:pk>/rotate/": ("POST /tokens/{token}/rotate",),
    "admin/login/": SESSION,
    "admin/logout/": SESSION,
    "admin/password_change/": PASSWORD,
    "alerts/<int:pk>/acknowledge/": ("POST /alerts/{alert}/acknowledge",),
    "availability/sites/<slug:name>/recompute/": ("POST /availability/recomputations",),
    "failures/signatures/edit/<slug:name>/": SIGNATURE,
    "failures/signatures/new/": SIGNATURE,
    "failures/signatures/withdraw/<slug:name>/": ("POST /failures/signatures/{signature}/withdraw",),
    "holds/<slug:kind>/<slug:name>/act/": ("POST /holds", "POST /holds/{kind}/{name}/resume", "POST /runs"),
    "incidents/<int:pk>/acknowledge/": ("POST /incidents/{incident}/acknowledge",),
    "incidents/<int:pk>/assign/": ("POST /incidents/{incident}/assign",),
    "incidents/<int:pk>/comment/": ("POST /incidents/{incident}/events",),
    "incidents/<int:pk>/resolve/": ("POST /incidents/{incident}/resolve",),
    "incidents/<int:pk>/silence/": (
        "GET /incidents/{incident}/silence",
        "PUT /incidents/{incident}/silence",
        "DELETE /incidents/{incident}/silence",
    ),
    "login/": SESSION,
    "login/cancel/": SESSION,
    "login/passkey/": SESSION,
    "login/second-factor/": SESSION,
    "login/sso/": PROVIDER,
    "login/sso/callback/": PROVIDER,
    "logout/": SESSION,
    "maintenance/new/": ("POST /maintenance",),
    "maintenance/windows/<slug:name>/delete/": ("DELETE /maintenance/{window}",),
    "maintenance/windows/<slug:name>/edit/": ("PATCH /maintenance/{window}",),
    "maintenance/windows/<slug:name>/end/": ("POST /maintenance/{window}/end",),
    "reporters/": ("POST /reporters",),
    "reporters/<slug:name>/code/": ("POST /reporters/{reporter}/codes",),
    "reporters/<slug:name>/revoke/": ("POST /reporters/{reporter}/revoke",),
    "series/<slug:name>/run-now/": ("POST /series/{series}/runs",),
    "settings/alerts/delete/<slug:name>/": RULE,
    "settings/alerts/edit/<slug:name>/": RULE,
    "settings/alerts/new/": RULE,
    "settings/alerts/test/<slug:name>/<int:number>/": (
        "POST /alert-rules/{rule}/channels/{number}/test",
        "GET /alert-rules/{rule}/tests/{test}",
    ),
    "settings/ping-keys/<slug:name>/": ("POST /series/{series}/ping-keys",),
    "settings/ping-keys/<slug:name>/<int:pk>/revoke/": ("POST /series/{series}/ping-keys/{key}/revoke",),
    "settings/series/edit/<slug:name>/": SERIES,
    "settings/series/new/": SERIES,
    "settings/series/retire/<slug:name>/": SERIES,
    "settings/suites/delete/<slug:name>/": SUITE,
    "settings/suites/edit/<slug:name>/": SUITE,
    "settings/suites/new/": SUITE,
    "settings/webhooks/delete/<slug:name>/": ("DELETE /webhooks/{webhook}",),
    "settings/webhooks/edit/<slug:name>/": ("PUT /webhooks/{webhook}",),
    "settings/webhooks/new/": ("PUT /webhooks/{webhook}",),
    "settings/webhooks/redeliver/<int:pk>/": ("POST /webhooks/{webhook}/deliveries/{delivery}/redeliver",),
    "settings/webhooks/secret/<slug:name>/": SECRET,
    "settings/webhooks/test/<slug:name>/": ("POST /webhooks/{webhook}/ping",),
    "sites/<slug:name>/edit/": ("PATCH /sites/{site}",),
}

# The models that the admin pages change.
MODELS: Mapping[str, Counterpart] = {
    "monitor.alertrule": RULE,
    "monitor.maintenancewindow": WINDOWS,
    "monitor.reporter": ("POST /reporters", "POST /reporters/{reporter}/revoke"),
    "monitor.resource": RESOURCE,
    "monitor.series": SERIES,
    "monitor.site": SITE,
    "monitor.suite": SUITE,
}


def test_each_form_of_the_pages_has_an_operation_or_a_reason() -> None:
    """The pages of accounts and logins have their forms where they are shown."""
    forms = {
        route
        for route, (_, sent) in PAGES.items()
        if sent is not None or route.startswith(("account/", "login/", "admin/"))
    }
    assert forms ^ set(FORMS) == set()


def test_each_model_that_the_admin_pages_change_has_an_operation_or_a_reason() -> None:
    changed = {model for model, rights in ADMIN.items() if set("".join(rights)) - {"v"}}
    assert changed ^ set(MODELS) == set()


def test_the_operations_of_forms_exist() -> None:
    counterparts = [*FORMS.values(), *MODELS.values()]
    named = {operation for each in counterparts if not isinstance(each, str) for operation in each}
    assert named - set(OPERATIONS) == set()
