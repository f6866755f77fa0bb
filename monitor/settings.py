"""Django settings. Everything that differs between installations comes from ``monitor.core.env``."""

from __future__ import annotations

from monitor.core import env, mail_server
from monitor.operations.embedded import urls
from monitor.operations.web_server import environment as web_environment
from monitor.operations.web_server import proxies
from monitor.web.accounts import environment

BASE_DIR = env.ROOT
VAR_DIR = env.var_directory()

SECRET_KEY = env.secret_key()
DEBUG = env.debug()
ALLOWED_HOSTS = env.hosts()

INSTALLED_APPS = [
    "monitor.apps.MonitorConfig",
    "django_htmx",
    "monitor.apps.GridcastAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.usersessions",
    "monitor.web.accounts.apps.AccountsConfig",  # after allauth, whose pages of the admin site it replaces
]

MIDDLEWARE = [
    "monitor.web.metrics.requests.RequestCountMiddleware",
    "monitor.web.api.http.request_ids.RequestIdMiddleware",
    "monitor.web.pages.http.proxies.ProxyMiddleware",  # before any that asks for the client or the scheme
    "django.middleware.security.SecurityMiddleware",
    "monitor.web.pages.http.security.ContentSecurityPolicyMiddleware",
    "monitor.web.pages.http.outage.OutageMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    # From here on, requests of programs skip each run of middlewares for browsers.
    "monitor.web.accounts.browsers.WhiteNoiseMiddleware",
    "monitor.web.accounts.browsers.PageCompressionMiddleware",
    "monitor.web.accounts.browsers.SessionMiddleware",
    "monitor.web.accounts.sessions.AuthenticationMiddleware",
    "monitor.web.api.http.processor_budget.ProcessorBudgetMiddleware",
    "monitor.web.api.http.token_use.TokenUseMiddleware",
    "monitor.web.pages.http.audit.AuditMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "monitor.web.accounts.browsers.MessageMiddleware",
    "monitor.web.accounts.browsers.HtmxMiddleware",
    "monitor.web.accounts.remote_user.RemoteUserMiddleware",
    "monitor.web.pages.http.read_form.FormMiddleware",  # known users may send larger forms
    "monitor.web.accounts.sessions.SessionUseMiddleware",
    "monitor.web.pages.http.factor_duty.FactorDutyMiddleware",
    "allauth.account.middleware.AccountMiddleware",
]

ROOT_URLCONF = "monitor.urls"
WSGI_APPLICATION = "monitor.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "monitor.web.pages.http.context.navigation",
                "monitor.web.pages.http.context.service_problems",
                "monitor.web.pages.http.context.open_alerts",
                "monitor.web.pages.http.context.rights",
            ],
            "libraries": {"parts": "monitor.web.pages.http.part_tag"},
        },
    },
]

DATABASES = {
    "default": {
        **env.parse_database_url(urls.database_url()),
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,  # reconnect after a restart of the server
    }
}
# Statements with bound parameters are prepared when a connection repeats them.
DATABASES["default"]["OPTIONS"] |= {"prepare_threshold": 5}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

PASSWORD_HASHERS = [
    "monitor.web.accounts.hashing.Argon2",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",  # of earlier versions: replaced when it is entered
]
_VALIDATION = "django.contrib.auth.password_validation"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"{_VALIDATION}.UserAttributeSimilarityValidator"},
    {"NAME": f"{_VALIDATION}.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": f"{_VALIDATION}.CommonPasswordValidator"},
    {"NAME": f"{_VALIDATION}.NumericPasswordValidator"},
]
AUTHENTICATION_BACKENDS = ["monitor.web.accounts.backend.RightsBackend"]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "overview"
LOGOUT_REDIRECT_URL = "login"

# Local accounts are made by administrators; no part of the login needs mail.
ACCOUNT_ADAPTER = "monitor.web.accounts.account_adapter.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_SESSION_REMEMBER = True  # for SESSION_COOKIE_AGE, not only until the browser is closed
ACCOUNT_RATE_LIMITS = MFA_RATE_LIMITS = False  # monitor.web.accounts.throttle has ours

MFA_ADAPTER = "monitor.web.accounts.second_factors.SecondFactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_ALLOW_UNVERIFIED_EMAIL = True
MFA_TOTP_TOLERANCE = 1  # clocks of phones differ by seconds
MFA_FORMS = {
    "activate_totp": "monitor.web.accounts.code_forms.AddAppForm",
    "authenticate": "monitor.web.accounts.code_forms.LoginCodeForm",
    "reauthenticate": "monitor.web.accounts.code_forms.ConfirmCodeForm",
    "add_webauthn": "monitor.web.accounts.passkey_forms.AddPasskeyForm",
    "authenticate_webauthn": "monitor.web.accounts.passkey_forms.SecondFactorPasskeyForm",
    "edit_webauthn": "monitor.web.accounts.passkey_forms.RenamePasskeyForm",
    "login_webauthn": "monitor.web.accounts.passkey_forms.LoginPasskeyForm",
    "reauthenticate_webauthn": "monitor.web.accounts.passkey_forms.ConfirmPasskeyForm",
}

SOCIALACCOUNT_ADAPTER = "monitor.web.accounts.provider_adapter.ProviderAdapter"
SOCIALACCOUNT_EMAIL_VERIFICATION = "none"
SOCIALACCOUNT_PROVIDERS = {
    "openid_connect": {"provider_class": "monitor.web.accounts.provider.provider.VerifyingProvider"}
}
SOCIALACCOUNT_REAUTHENTICATION_REQUIRED = True  # to connect an account there with one here
GRIDCAST_IDENTITY_PROVIDER = environment.identity_provider()
GRIDCAST_REMOTE_USER = environment.remote_user()
# How long the roles that the provider named count, and which accounts log in without the provider.
GRIDCAST_OIDC_VALID_DAYS = environment.valid_days()
GRIDCAST_LOCAL_LOGIN = environment.local_login()

# Users with these roles need a second factor, after some days; a login at the identity provider with one of
# the values in its claims ``amr`` or ``acr`` had one.
GRIDCAST_SECOND_FACTOR_ROLES = environment.second_factor_roles()
GRIDCAST_SECOND_FACTOR_DAYS = environment.second_factor_days()
GRIDCAST_OIDC_SECOND_FACTOR_VALUES = environment.provider_factor_values()

# Public pages and logout tokens; monitor.web.accounts.throttle counts under the same prefix. While Valkey is
# unreachable, each process has its own.
CACHES = {
    "default": {
        "BACKEND": "monitor.web.accounts.valkey_cache.ValkeyCache",
        "LOCATION": urls.redis_url(),
        "KEY_PREFIX": "gridcast",
    }
}

LANGUAGE_CODE = "en"
USE_I18N = False
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "static/"
_STATIC_FILES = "monitor.web.pages.http.static_files"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": f"{_STATIC_FILES}.HashedNameStorage"},
}
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    f"{_STATIC_FILES}.HashedNameFinder",
]
WHITENOISE_USE_FINDERS = True  # no collectstatic needed

SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SESSION_ENGINE = "monitor.web.accounts.session_store"
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = environment.session_seconds()
# The only peers that may say who the client is; ProxyMiddleware removes such headers of any other.
GRIDCAST_PROXIES = proxies.proxies()
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if env.behind_tls() else None
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = env.behind_tls()
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]  # asked on this host, without the proxy
SECURE_HSTS_SECONDS = 365 * 24 * 3600 if env.behind_tls() else 0

_mail = mail_server.email()
EMAIL_HOST, EMAIL_PORT = _mail.host, _mail.port
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = _mail.user, _mail.password
EMAIL_USE_TLS, EMAIL_USE_SSL = _mail.starttls, _mail.tls
DEFAULT_FROM_EMAIL = _mail.sender
EMAIL_BACKEND = "monitor.core.egress.mail.EmailBackend"
EMAIL_TIMEOUT = 20.0  # seconds, for the whole of a message

CELERY_BROKER_URL = urls.redis_url()
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_DEFAULT_QUEUE = "control"
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_CHANNEL_ERROR_RETRY = True  # of a broker that answers with errors: read-only, out of memory
CELERY_WORKER_CONSUMER = "monitor.runs.worker.consumer:ReconnectingConsumer"
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = (
    False  # a run goes on while the broker is unavailable
)
# Never let the broker redeliver: the leases in the ledger decide what is run again.
CELERY_BROKER_TRANSPORT_OPTIONS = {"visibility_timeout": 24 * 3600, "socket_timeout": 5}
# Without a file: the intervals are short, and a schedule that is kept is a pickle, which another user could
# write where the file's directory permits it, or which a full disk or a kill leaves half written.
CELERY_BEAT_SCHEDULER = "celery.beat:Scheduler"
CELERY_BEAT_SCHEDULE = {
    "tick": {"task": "monitor.tasks.tick", "schedule": 2.0, "options": {"expires": 10}},
    "heartbeat": {
        "task": "monitor.tasks.heartbeat",
        "schedule": 5.0,
        "options": {"expires": 5, "queue": "reporter.home"},
    },
    "gather-dirty-hours": {
        "task": "monitor.tasks.gather_dirty_hours",
        "schedule": 2.0,
        "options": {"expires": 2},
    },
    "update-forecasts": {
        "task": "monitor.tasks.update_forecasts",
        "schedule": 2.0,
        "options": {"expires": 2},
    },
    "roll-up": {"task": "monitor.tasks.roll_up", "schedule": 5.0, "options": {"expires": 5}},
    "count-outcomes": {
        "task": "monitor.tasks.count_outcomes",
        "schedule": 60.0,
        "options": {"expires": 60},
    },
    "deliver-webhooks": {
        "task": "monitor.tasks.deliver_webhooks",
        "schedule": 5.0,
        "options": {"expires": 5},
    },
    "deliver-account-mail": {
        "task": "monitor.tasks.deliver_account_mail",
        "schedule": 10.0,
        "options": {"expires": 10},
    },
    "export-traces": {
        "task": "monitor.tasks.export_traces",
        "schedule": 10.0,
        "options": {"expires": 10},
    },
    "watch-reporters": {
        "task": "monitor.tasks.watch_reporters",
        "schedule": 15.0,
        "options": {"expires": 15},
    },
    "classify-failures": {
        "task": "monitor.tasks.classify_failures",
        "schedule": 5.0,
        "options": {"expires": 5},
    },
    "attribute-failures": {
        "task": "monitor.tasks.attribute_failures",
        "schedule": 30.0,
        "options": {"expires": 30},
    },
    "refresh-availability": {
        "task": "monitor.tasks.refresh_availability",
        "schedule": 30.0,
        "options": {"expires": 30},
    },
    "refresh-storage": {
        "task": "monitor.tasks.refresh_storage",
        "schedule": 15.0,
        "options": {"expires": 15},
    },
    "delete-series": {
        "task": "monitor.tasks.delete_series",
        "schedule": 5.0,
        "options": {"expires": 5},
    },
    "refresh-provider": {
        "task": "monitor.tasks.refresh_provider",
        "schedule": 60.0,
        "options": {"expires": 30},
    },
    "housekeep": {"task": "monitor.tasks.housekeep", "schedule": 600.0, "options": {"expires": 300}},
}

# The base of links in notifications, which have none without it; passkeys belong to its origin.
GRIDCAST_URL = web_environment.web_url()

# The lease of a claimed run, and how often its executor renews it; an expired run is claimed again.
GRIDCAST_LEASE_SECONDS = 30
GRIDCAST_HEARTBEAT_SECONDS = 5
GRIDCAST_MAX_ATTEMPTS = 3
# A scheduled slot that no reporter has taken this long after it was due is missed.
GRIDCAST_GRACE_SECONDS = 120

# The availability of a month is final this many days after the month; then only recomputations change it.
GRIDCAST_AVAILABILITY_FINAL_AFTER_DAYS = env.availability_final_after_days()

# Events of the audit record are deleted after this many days.
GRIDCAST_AUDIT_KEEP_DAYS = env.audit_keep_days()

# Rotation prolongs a token until this many days after the first token of its family was issued.
GRIDCAST_TOKEN_FAMILY_DAYS = env.token_family_days()

# The number of transactions that may store reports at the same time on a web host; further senders get 503.
GRIDCAST_RECEIVE_AT_ONCE = 4
# The maximum number of requests in a web process that wait for the next group commit.
GRIDCAST_RECEIVE_WAITING = 64

# The number of API requests within ten seconds by one token, user, reporter or unauthenticated address.
GRIDCAST_API_REQUESTS = web_environment.api_requests()

# Seconds of processor time within ten seconds for one user, and for one address without a login.
GRIDCAST_PROCESSOR_SECONDS = web_environment.processor_seconds()
GRIDCAST_ANONYMOUS_PROCESSOR_SECONDS = web_environment.anonymous_processor_seconds()

# A request deletes a series with so many runs itself; more runs are deleted in the background.
GRIDCAST_DELETED_AT_ONCE_RUNS = 1_000

# PostgreSQL cancels a longer statement of the web server, whose caller is told so.
GRIDCAST_WEB_STATEMENT_SECONDS = web_environment.statement_seconds()

# How long a request for a forecast that is not stored may compute; beyond that it is told to try again.
GRIDCAST_FORECAST_SECONDS = 0.5

# Reports are refused while less than the reserve is free, on the disk or below the size limit of the
# database.
GRIDCAST_DEPOT_DIRECTORY = urls.depot_directory()
GRIDCAST_DEPOT_MAX_BYTES = env.depot_max_bytes()
GRIDCAST_DEPOT_RESERVE_BYTES = env.depot_reserve_bytes()

# Hosts that may read /metrics without a token, and the number of series that one answer describes.
GRIDCAST_METRICS_ALLOW = web_environment.metrics_allow()
# Shorter than the usual interval of 15 s: two servers that scrape share an answer.
GRIDCAST_METRICS_VALID_SECONDS = 5.0
GRIDCAST_METRICS_MAX_SERIES = web_environment.metrics_max_series()

# Hosts that may receive webhooks although their addresses are internal.
GRIDCAST_INTERNAL_WEBHOOK_HOSTS = env.internal_webhook_hosts()

# The collector of OpenTelemetry that receives runs as traces; empty: none does.
GRIDCAST_OTLP_ENDPOINT = env.otlp_endpoint()

# If this share of all sites begins to fail within the window, the monitor suspects itself.
GRIDCAST_SUSPECT_SHARE = env.suspect_share()
GRIDCAST_SUSPECT_WINDOW_SECONDS = env.suspect_window_seconds()

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "monitor.core.log.LineFormatter",
            "format": "%(asctime)s %(levelname)s %(name)s%(request_id)s: %(message)s",
        }
    },
    "filters": {
        "busy": {"()": "monitor.core.log.BusyAnswers"},
        "refused hosts": {"()": "monitor.core.log.RefusedHosts"},
        "refusals": {"()": "monitor.core.log.Refusals"},
        "request": {"()": "monitor.core.log.RequestId"},
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["request"]}},
    "loggers": {
        "django.request": {"filters": ["busy", "refusals"]},
        "fido2": {
            "level": "WARNING"
        },  # it takes passkeys for accepted that are then refused for their counter
        "django.security.DisallowedHost": {"filters": ["refused hosts"]},  # scanners send any host
    },
    "root": {"handlers": ["stderr"], "level": "INFO"},
}
