"""The table of access: for each operation and page, the roles and scopes that may use it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from monitor.models.role import UserRole
from monitor.models.token import MANAGE, OUTCOME, READ, REPORT, RUN, SCOPES
from tests.monitor.depot.access.world import OWN, Identity

VIEWER, SCHEDULER, SITE_ADMIN, OPERATOR, ADMINISTRATOR = UserRole
ALL_ROLES = frozenset(UserRole)
READERS = ALL_ROLES - {SCHEDULER}
MANAGERS = frozenset({SITE_ADMIN, OPERATOR, ADMINISTRATOR})
OPERATORS = frozenset({OPERATOR, ADMINISTRATOR})
PERMITTED = {  # scopes that a token of a user with the role can use
    VIEWER: frozenset({READ}),
    SCHEDULER: frozenset({READ, OUTCOME}),
    SITE_ADMIN: frozenset({READ, RUN, REPORT, MANAGE}),
    OPERATOR: frozenset(SCOPES),
    ADMINISTRATOR: frozenset(SCOPES),
}


@dataclass(frozen=True)
class Decision:
    """Users with one of *roles* may; programs if their tokens have all of *scopes*.

    Attributes:
        is_own: a site admin, and a token that is bound to a site, may at this site only.
        is_everywhere: a token that is bound to a site may not.
        is_program: sessions may not.
        is_rotation: a token may not whose scopes the role does not permit: none is left for the new one.
        asked: those of *scopes* that the body of the table asks for: a program without them may not.
        answers: what else a permitted request may be answered with, because the table sends no real content.
    """

    roles: frozenset[UserRole]
    scopes: tuple[str, ...] = (READ,)
    is_own: bool = False
    is_everywhere: bool = False
    is_program: bool = False
    is_rotation: bool = False
    asked: tuple[str, ...] = ()
    answers: frozenset[int] = frozenset()

    def without_body(self) -> Decision:
        """Return the decision about a request whose body is not known."""
        return replace(self, scopes=tuple(scope for scope in self.scopes if scope not in self.asked))

    def permits(self, identity: Identity, place: str) -> bool:
        if identity.role is None or identity.role not in self.roles:
            return False
        if identity.scopes is None and self.is_program:
            return False
        if identity.scopes is not None and not identity.scopes.issuperset(self.scopes):
            return False
        if identity.bound_to and (self.is_everywhere or (self.is_own and identity.bound_to != place)):
            return False
        if self.is_rotation and not PERMITTED[identity.role].intersection(identity.scopes or ()):
            return False
        return not (self.is_own and identity.role == SITE_ADMIN and place != OWN)


@dataclass(frozen=True)
class Special:
    """An operation that decides by itself: *expected* is its status for every identity."""

    expected: frozenset[int]


ACCOUNT = Decision(ALL_ROLES)
READING = Decision(READERS)
HOME = Decision(ALL_ROLES, answers=frozenset({302}))  # leads a scheduler to its tokens
OUTCOMES = Decision(OPERATORS | {SCHEDULER}, (OUTCOME,))
AT_SITES = Decision(MANAGERS, (RUN,), is_own=True)
REPORTERS = Decision(MANAGERS, (MANAGE,), is_own=True)
REPORTERS_READ = replace(REPORTERS, scopes=(MANAGE, READ))
SIGNATURES = Decision(OPERATORS, (MANAGE,), is_everywhere=True)
WEBHOOKS = SIGNATURES
WEBHOOKS_READ = replace(WEBHOOKS, scopes=(MANAGE, READ))
RULES = Decision(MANAGERS, (), is_own=True)  # pages only
MANAGING = Decision(MANAGERS)
CONFIGURING = Decision(OPERATORS)
ENTRIES = Decision(OPERATORS, (MANAGE,), is_everywhere=True)
ENTRIES_READ = replace(ENTRIES, scopes=(MANAGE, READ))
SELF = Decision(ALL_ROLES, ())  # what a token says about itself, or does to itself
TOKENS_READ = Decision(ALL_ROLES, is_everywhere=True)
TOKENS = Decision(ALL_ROLES, (MANAGE, READ), is_everywhere=True)  # the token has the scope read, and no site
NEW_TOKENS = Decision(ALL_ROLES, (MANAGE, READ), asked=(READ,))
AUDIT = Decision(OPERATORS, is_everywhere=True)
ADMINISTRATORS = Decision(frozenset({ADMINISTRATOR}))
CONFIRMED = replace(ADMINISTRATORS, answers=frozenset({302}))  # leads to the confirmation after five minutes
PINGS = Decision(MANAGERS, (REPORT,), is_program=True)
SENDERS = replace(PINGS, answers=frozenset({422}))
ABSENT = Decision(READERS, answers=frozenset({404}))
AGENTS = Special(frozenset({401}))  # signed by the key of an agent; no identity of this table has one
CODES = Special(frozenset({422}))  # a code says which agent may enrol; the request is judged first
PUBLIC = Special(frozenset({200}))
BY_KEY = PUBLIC  # the key in the path gives the right
BY_TOKEN_OF_PROVIDER = Special(frozenset({400, 404}))  # its signature gives the right
LOGIN = Special(frozenset({200, 302, 404, 405}))  # steps of a login, of which none is in progress
# Pages of the own account: some ask for the password again, or are about what the account does not have.
OWN_ACCOUNT = Decision(ALL_ROLES, answers=frozenset({302, 400, 404}))

OPERATIONS: Mapping[str, Decision | Special] = {
    "GET /alert-rules": READING,
    "GET /alert-rules/{rule}": READING,
    "POST /alert-rules/{rule}/channels/{number}/test": replace(REPORTERS, answers=frozenset({503})),
    "GET /alert-rules/{rule}/tests/{test}": replace(REPORTERS_READ, answers=frozenset({404})),
    "GET /alerts": READING,
    "GET /alerts/{alert}": READING,
    "POST /alerts/{alert}/acknowledge": AT_SITES,
    "GET /audit": AUDIT,
    "GET /audit/{event}": replace(AUDIT, answers=frozenset({404})),
    "GET /availability": READING,
    "GET /availability/profiles": READING,
    "GET /availability/recomputations": READING,
    "POST /availability/recomputations": AT_SITES,
    "GET /availability/recomputations/{recomputation}": ABSENT,
    "GET /availability/sites/{site}": READING,
    "GET /failures": READING,
    "GET /failures/attributions": READING,
    "GET /failures/breakdown": READING,
    "GET /failures/by-hour": READING,
    "GET /failures/counts": READING,
    "GET /failures/episodes": READING,
    "GET /failures/own-signatures": READING,
    "GET /failures/own-signatures/{signature}": READING,
    "GET /failures/proposals": READING,
    "GET /failures/signatures": READING,
    "POST /failures/signatures": SIGNATURES,
    "POST /failures/signatures/{signature}/withdraw": SIGNATURES,
    "GET /forecasts": ACCOUNT,
    "GET /forecasts/accuracy": ACCOUNT,
    "POST /forecasts/outcomes": OUTCOMES,
    "POST /forecasts/rank": ACCOUNT,
    "GET /forecasts/{forecast}": ACCOUNT,
    "GET /forecasts/{forecast}/outcome": Decision(ALL_ROLES, answers=frozenset({404})),
    "POST /forecasts/{forecast}/outcome": OUTCOMES,
    **{
        f"{method} /grid/{section}/{{name}}": ENTRIES_READ if method == "GET" else ENTRIES
        for section in ("resources", "series", "sites", "suites")
        for method in ("GET", "PUT", "DELETE")
    },
    "GET /grid/alerts/{name}": REPORTERS_READ,
    "PUT /grid/alerts/{name}": REPORTERS,
    "DELETE /grid/alerts/{name}": REPORTERS,
    "GET /holds": READING,
    "POST /holds": AT_SITES,
    "GET /holds/{hold}": READING,
    "POST /holds/{kind}/{name}/resume": AT_SITES,
    "GET /incidents": READING,
    "GET /incidents/{incident}": READING,
    "POST /incidents/{incident}/acknowledge": AT_SITES,
    "POST /incidents/{incident}/assign": AT_SITES,
    "GET /incidents/{incident}/events": READING,
    "POST /incidents/{incident}/events": AT_SITES,
    "GET /incidents/{incident}/events/{event}": ABSENT,
    "POST /incidents/{incident}/resolve": AT_SITES,
    "DELETE /incidents/{incident}/silence": AT_SITES,
    "GET /incidents/{incident}/silence": READING,
    "PUT /incidents/{incident}/silence": AT_SITES,
    "GET /latest": READING,
    "GET /maintenance": READING,
    "POST /maintenance": AT_SITES,
    "DELETE /maintenance/{window}": AT_SITES,
    "GET /maintenance/{window}": READING,
    "PATCH /maintenance/{window}": AT_SITES,
    "POST /maintenance/{window}/end": AT_SITES,
    "GET /me": SELF,
    "GET /methods": ACCOUNT,
    "GET /methods/{method}": ACCOUNT,
    "GET /pairs": READING,
    "GET /ping/{key}": BY_KEY,
    "POST /ping/{key}": BY_KEY,
    "GET /ping/{key}/{signal}": BY_KEY,
    "POST /ping/{key}/{signal}": BY_KEY,
    "GET /probes": ACCOUNT,
    "GET /probes/{probe}": ACCOUNT,
    "GET /reporters": READING,
    "POST /reporters": REPORTERS,
    "POST /reporters/enrol": CODES,
    "GET /reporters/{reporter}": READING,
    "POST /reporters/{reporter}/codes": REPORTERS,
    "POST /reporters/{reporter}/revoke": REPORTERS,
    "POST /reporters/{reporter}/exchange": AGENTS,
    "POST /reporters/{reporter}/records": AGENTS,
    "POST /reports": SENDERS,
    "GET /reports/schema": PUBLIC,
    "GET /resources": ACCOUNT,
    "GET /resources/{resource}": ACCOUNT,
    "GET /runs": READING,
    "POST /runs": AT_SITES,
    "GET /runs/{run}": READING,
    "GET /runs/{run}/report": READING,
    "GET /scoreboard": ACCOUNT,
    "GET /scoreboard/{part}.csv": ACCOUNT,
    "GET /series": ACCOUNT,
    "GET /series/{series}": ACCOUNT,
    "GET /series/{series}/deletion": ABSENT,
    "GET /series/{series}/export": READING,
    "GET /series/{series}/latest": READING,
    "GET /series/{series}/metrics": READING,
    "GET /series/{series}/metrics/{metric}": READING,
    "GET /series/{series}/metrics/{metric}/distribution": READING,
    "GET /series/{series}/metrics/{metric}/history": READING,
    "GET /series/{series}/metrics/{metric}/statistics": READING,
    "GET /series/{series}/metrics/{metric}/samples": READING,
    "POST /series/{series}/ping": PINGS,
    "GET /series/{series}/ping-keys": REPORTERS_READ,
    "POST /series/{series}/ping-keys": REPORTERS,
    "GET /series/{series}/ping-keys/{key}": REPORTERS_READ,
    "POST /series/{series}/ping-keys/{key}/revoke": REPORTERS,
    "POST /series/{series}/ping/{signal}": PINGS,
    "POST /series/{series}/runs": AT_SITES,
    "GET /series/{series}/segments": READING,
    "GET /sites": ACCOUNT,
    "GET /sites/{site}": ACCOUNT,
    "PATCH /sites/{site}": AT_SITES,
    "GET /slots": READING,
    "GET /storage": READING,
    "GET /storage/{resource}": READING,
    "GET /suites": READING,
    "GET /suites/{suite}": READING,
    "GET /tokens": ACCOUNT,
    "POST /tokens": NEW_TOKENS,
    "GET /tokens/{token}": TOKENS_READ,
    "DELETE /tokens/{token}": TOKENS,
    "POST /tokens/self/rotate": replace(SELF, is_program=True, is_rotation=True),
    "POST /tokens/{token}/rotate": TOKENS,
    "GET /webhooks": WEBHOOKS_READ,
    "DELETE /webhooks/{webhook}": WEBHOOKS,
    "GET /webhooks/{webhook}": WEBHOOKS_READ,
    "PUT /webhooks/{webhook}": WEBHOOKS,
    "GET /webhooks/{webhook}/deliveries": WEBHOOKS_READ,
    "GET /webhooks/{webhook}/deliveries/{delivery}": WEBHOOKS_READ,
    "POST /webhooks/{webhook}/deliveries/{delivery}/redeliver": WEBHOOKS,
    "POST /webhooks/{webhook}/ping": WEBHOOKS,
}

# Pages by their routes: the decisions on opening them and on sending their form. None: there is none.
PAGES: Mapping[str, tuple[Decision | Special | None, Decision | Special | None]] = {
    "": (HOME, None),
    "access/": (ADMINISTRATORS, None),
    "access/groups/": (ADMINISTRATORS, None),
    "access/groups/<int:pk>/": (ADMINISTRATORS, None),
    **{
        f"access/groups/{change}/": (CONFIRMED, CONFIRMED)
        for change in (
            "new",
            *(f"<int:pk>/{verb}" for verb in ("add", "delete", "forbid", "permit", "remove", "rename")),
        )
    },
    "access/users/<int:pk>/": (ADMINISTRATORS, None),
    **{
        f"access/users/{change}/": (CONFIRMED, CONFIRMED)
        for change in (
            "new",
            *(f"<int:pk>/{verb}" for verb in ("delete", "disable", "disconnect", "enable", "end-sessions")),
            *(f"<int:pk>/{verb}" for verb in ("forbid", "grant", "join", "leave", "password", "permit")),
            *(f"<int:pk>/{verb}" for verb in ("profile", "remove-factor", "revoke", "revoke-token")),
        )
    },
    "account/": (OWN_ACCOUNT, None),
    "account/app/": (OWN_ACCOUNT, None),
    "account/app/remove/": (OWN_ACCOUNT, None),
    "account/confirm/code/": (OWN_ACCOUNT, None),
    "account/confirm/passkey/": (OWN_ACCOUNT, None),
    "account/confirm/password/": (OWN_ACCOUNT, None),
    "account/connect/": (OWN_ACCOUNT, None),
    "account/confirm/provider/": (OWN_ACCOUNT, None),
    "account/identities/<int:pk>/disconnect/": (OWN_ACCOUNT, None),
    "account/passkeys/<int:pk>/remove/": (OWN_ACCOUNT, None),
    "account/passkeys/<int:pk>/rename/": (OWN_ACCOUNT, None),
    "account/passkeys/add/": (OWN_ACCOUNT, None),
    "account/password/": (OWN_ACCOUNT, None),
    "account/recovery-codes/": (OWN_ACCOUNT, None),
    "account/recovery-codes/download/": (OWN_ACCOUNT, None),
    "account/recovery-codes/new/": (OWN_ACCOUNT, None),
    "account/defaults/": (None, READING),
    "account/time-zone/": (None, ACCOUNT),
    "account/second-factor/": (OWN_ACCOUNT, None),
    "account/sessions/end/": (None, OWN_ACCOUNT),
    "admin/login/": (Special(frozenset({302, 403})), None),
    "admin/logout/": (None, Special(frozenset({302}))),
    "admin/password_change/": (OWN_ACCOUNT, None),
    "login/cancel/": (LOGIN, None),
    "login/passkey/": (LOGIN, None),
    "login/second-factor/": (LOGIN, None),
    "login/sso/": (LOGIN, None),
    "login/sso/callback/": (LOGIN, None),
    "login/sso/backchannel-logout/": (None, BY_TOKEN_OF_PROVIDER),
    "alerts/": (READING, None),
    "alerts/<int:pk>/acknowledge/": (None, AT_SITES),
    "api/v1/": (Special(frozenset({404})), None),
    "help/api/": (PUBLIC, None),
    "help/api/<slug:operation>/": (PUBLIC, None),
    "api/v1/openapi.json": (PUBLIC, None),
    "audit/": (AUDIT, None),
    "audit/audit.csv": (AUDIT, None),
    "availability/": (READING, None),
    "availability/recomputations/": (READING, None),
    "availability/sites/<slug:name>/": (READING, None),
    "availability/sites/<slug:name>/recompute/": (None, AT_SITES),
    "banner/": (ACCOUNT, None),
    "failures/": (READING, None),
    "failures/causes/<slug:name>/": (READING, None),
    "failures/calendar/": (READING, None),
    "failures/breakdown/": (READING, None),
    "healthz": (PUBLIC, None),
    "help/": (ACCOUNT, None),
    "help/guides/<slug:guide>/": (ACCOUNT, None),
    "help/files/<path:file>": (ACCOUNT, None),
    "holds/": (READING, None),
    "holds/<slug:kind>/<slug:name>/": (READING, None),
    "holds/<slug:kind>/<slug:name>/act/": (None, AT_SITES),
    "incidents/": (READING, None),
    "incidents/<int:pk>/": (READING, None),
    "incidents/<int:pk>/acknowledge/": (None, AT_SITES),
    "incidents/<int:pk>/assign/": (None, AT_SITES),
    "incidents/<int:pk>/comment/": (None, AT_SITES),
    "incidents/<int:pk>/resolve/": (None, AT_SITES),
    "incidents/<int:pk>/silence/": (None, AT_SITES),
    "login/": (LOGIN, LOGIN),
    "logout/": (None, Special(frozenset({302}))),
    "maintenance.ics": (READING, None),
    "maintenance/new/": (MANAGING, MANAGING),
    "maintenance/windows/<slug:name>/": (READING, None),
    "maintenance/windows/<slug:name>/delete/": (None, AT_SITES),
    "maintenance/windows/<slug:name>/edit/": (AT_SITES, AT_SITES),
    "maintenance/windows/<slug:name>/end/": (None, AT_SITES),
    "map/": (READING, None),
    "metrics": (READING, None),
    "public/": (PUBLIC, None),
    "public/badges/sites/<slug:name>.svg": (Special(frozenset({404})), None),  # nothing is public there
    "public/badges/suites/<slug:name>.svg": (Special(frozenset({404})), None),
    "readyz": (Special(frozenset({200, 503})), None),
    "reporters/": (READING, REPORTERS),
    "reporters/<slug:name>/": (READING, None),
    "reporters/<slug:name>/code/": (None, REPORTERS),
    "reporters/<slug:name>/revoke/": (None, REPORTERS),
    "reports/monthly/": (READING, None),
    "reports/weekly/": (READING, None),
    "reports/<slug:period>/": (READING, None),
    "reports/<slug:period>/report.csv": (READING, None),
    "reports/<slug:period>/report.pdf": (Decision(READERS, answers=frozenset({302})), None),
    "runs/": (READING, None),
    "runs/runs.csv": (READING, None),
    "runs/<uuid:pk>/": (READING, None),
    "runs/<uuid:pk>/conflicts/<int:number>.json": (ABSENT, None),
    "runs/<uuid:pk>/report.json": (READING, None),
    "forecasts/accuracy/": (READING, None),
    "forecasts/rank/": (READING, None),
    "forecasts/accuracy/<slug:part>.csv": (READING, None),
    "schedule.csv": (READING, None),
    "schedule/": (READING, None),
    "series/<slug:name>/": (READING, None),
    "series/<slug:name>/run-now/": (None, AT_SITES),
    "series/<slug:name>/samples.<slug:form>": (READING, None),
    "series/<slug:name>/chart.<slug:form>": (READING, None),
    "series/<slug:name>/patterns/": (READING, None),
    "series/<slug:name>/sweep.csv": (ABSENT, None),
    "series/<slug:name>/runs/": (READING, None),
    "series/": (READING, None),
    "search/": (READING, None),
    "compare/": (READING, None),
    "compare/pairs.<slug:form>": (ABSENT, None),
    "failures/signatures/": (READING, None),
    "failures/signatures/edit/<slug:name>/": (SIGNATURES, SIGNATURES),
    "failures/signatures/new/": (SIGNATURES, SIGNATURES),
    "failures/signatures/withdraw/<slug:name>/": (None, SIGNATURES),
    "sites/": (READING, None),
    "sites/<slug:name>/": (READING, None),
    "sites/<slug:name>/edit/": (AT_SITES, AT_SITES),
    "sites/<slug:site>/resources/<slug:name>/": (READING, None),
    "storage/": (READING, None),
    "storage/<slug:name>/": (READING, None),
    "style/": (READING, None),
    "account/tokens/": (ACCOUNT, ACCOUNT),
    "account/tokens/<int:pk>/revoke/": (None, ACCOUNT),
    "account/tokens/<int:pk>/rotate/": (None, ACCOUNT),
    "settings/": (READING, None),
    "settings/alerts/": (READING, None),
    "settings/alerts/delete/<slug:name>/": (RULES, RULES),
    "settings/alerts/edit/<slug:name>/": (RULES, RULES),
    "settings/alerts/new/": (MANAGING, MANAGING),
    "settings/alerts/test/<slug:name>/<int:number>/": (None, RULES),
    "settings/ping-keys/": (MANAGING, None),
    "settings/ping-keys/<slug:name>/": (REPORTERS, REPORTERS),
    "settings/ping-keys/<slug:name>/<int:pk>/revoke/": (None, REPORTERS),
    "settings/series/": (READING, None),
    "settings/series/edit/<slug:name>/": (CONFIGURING, CONFIGURING),
    "settings/series/new/": (CONFIGURING, CONFIGURING),
    "settings/series/retire/<slug:name>/": (CONFIGURING, CONFIGURING),
    "settings/suites/": (READING, None),
    "settings/suites/delete/<slug:name>/": (CONFIGURING, CONFIGURING),
    "settings/suites/edit/<slug:name>/": (CONFIGURING, CONFIGURING),
    "settings/suites/new/": (CONFIGURING, CONFIGURING),
    "settings/webhooks/": (WEBHOOKS, None),
    "settings/webhooks/delete/<slug:name>/": (WEBHOOKS, WEBHOOKS),
    "settings/webhooks/edit/<slug:name>/": (WEBHOOKS, WEBHOOKS),
    "settings/webhooks/new/": (WEBHOOKS, WEBHOOKS),
    "settings/webhooks/redeliver/<int:pk>/": (None, WEBHOOKS),
    "settings/webhooks/secret/<slug:name>/": (None, WEBHOOKS),
    "settings/webhooks/test/<slug:name>/": (None, WEBHOOKS),
}

# Models of the admin pages: what site admins, operators and administrators may: view, add, change, delete.
_VIEW, _ALL = "v", "vacd"
ADMIN: Mapping[str, tuple[str, str, str]] = {
    "monitor.alert": ("", _VIEW, _VIEW),
    "monitor.alertrule": (_ALL, _ALL, _ALL),
    "monitor.auditevent": ("", _VIEW, _VIEW),
    "monitor.forecast": ("", _VIEW, _VIEW),
    "monitor.heartbeat": ("", _VIEW, _VIEW),
    "monitor.hold": ("", _VIEW, _VIEW),
    "monitor.maintenancewindow": (_ALL, _ALL, _ALL),
    "monitor.metric": ("", _VIEW, _VIEW),
    "monitor.notification": ("", _VIEW, _VIEW),
    "monitor.reporter": ("", _ALL, _ALL),
    "monitor.resource": ("", _ALL, _ALL),
    "monitor.run": ("", _VIEW, _VIEW),
    "monitor.segment": ("", _VIEW, _VIEW),
    "monitor.series": ("", _ALL, _ALL),
    "monitor.site": ("", _ALL, _ALL),
    "monitor.suite": ("", _ALL, _ALL),
    "monitor.usage": ("", _VIEW, _VIEW),
}
