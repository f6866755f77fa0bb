"""URLs of channels without their paths, which are secrets at many receivers: they permit to post there.

Users who may change every alert rule, and the author of the rule, may read the whole URL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.db.models import Q
from django.utils.crypto import salted_hmac

from monitor.analysis.webhooks import destination
from monitor.analysis.webhooks.destination import HIDDEN, InvalidUrl
from monitor.models import AlertRule
from monitor.models.alert import CHANGE_RULES
from monitor.models.role import identity_of
from monitor.models.site import may_manage_everywhere

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

_SALT = "gridcast.concealed-url"
_DIGITS = 12


def sees_urls(user: AbstractBaseUser | AnonymousUser, rule: str) -> bool:
    """Return whether *user* may read the whole URLs of the channels of the rule named *rule*.

    The author may while it acts by the identity by which it saved the rule, or if it saved it without one.
    """
    if may_manage_everywhere(user, CHANGE_RULES):
        return True
    own = AlertRule.objects.filter(Q(identity=None) | Q(identity=identity_of(user)), author=user.pk)
    return user.is_authenticated and own.filter(name=rule).exists()


def concealed_channels(channels: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Return *channels* without the paths of the URLs in their options."""
    return tuple({name: _concealed(value) for name, value in channel.items()} for channel in channels)


def _concealed(value: Any) -> Any:
    """Return a URL as its origin and a digest, by which two URLs can be told apart."""
    if not isinstance(value, str) or not value.startswith(("https://", "http://")):
        return value
    try:
        origin = destination.parse(value).origin
    except InvalidUrl:  # the admin pages of earlier versions stored any text
        origin = ""
    return f"{origin}/{HIDDEN}{salted_hmac(_SALT, value).hexdigest()[:_DIGITS]}"
