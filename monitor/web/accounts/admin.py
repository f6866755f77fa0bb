"""Takes accounts, groups, second factors, identities and sessions out of the admin site.

Their pages, below ``/access/`` and ``/account/``, ask for confirmation and write the audit record.
"""

from __future__ import annotations

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from allauth.usersessions.models import UserSession
from django.contrib import admin
from django.contrib.auth.models import Group, User

for model in (User, Group, Authenticator, EmailAddress, SocialAccount, SocialApp, SocialToken, UserSession):
    admin.site.unregister(model)
