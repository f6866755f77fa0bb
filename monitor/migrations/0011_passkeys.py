"""Challenges and user handles of passkeys, and the terms of second factors."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import monitor.models.passkey

# Until now a device alone said which passkeys log in without the password; only some devices say of a passkey
# that it cannot.
STORE_PASSWORDLESS = """
UPDATE mfa_authenticator SET data = data || jsonb_build_object('passwordless',
    (data #> '{credential,clientExtensionResults,credProps,rk}') IS DISTINCT FROM 'false'::jsonb)
WHERE type = 'webauthn' AND NOT data ? 'passwordless'
"""


class Migration(migrations.Migration):
    dependencies = [
        ("mfa", "0003_authenticator_type_uniq"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("monitor", "0010_provider_metadata"),
    ]

    operations = [
        migrations.CreateModel(
            name="PasskeyChallenge",
            fields=[
                ("challenge", models.CharField(max_length=64, primary_key=True, serialize=False)),
                (
                    "ceremony",
                    models.CharField(
                        choices=[
                            ("registration", "Registration"),
                            ("login", "Login"),
                            ("second factor", "Second Factor"),
                        ],
                        max_length=20,
                    ),
                ),
                ("browser", models.CharField(db_index=True, max_length=64)),
                ("expires_at", models.DateTimeField(db_index=True)),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="PasskeyHandle",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "handle",
                    models.BinaryField(default=monitor.models.passkey.new_handle, max_length=64, unique=True),
                ),
            ],
        ),
        migrations.CreateModel(
            name="SecondFactorTerm",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("began_at", models.DateTimeField()),
            ],
        ),
        migrations.RunSQL(STORE_PASSWORDLESS, migrations.RunSQL.noop),
    ]
