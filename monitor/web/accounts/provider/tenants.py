"""Issuers that stand for many tenants, whose users any of them could make. Pure."""

from __future__ import annotations

from urllib.parse import urlsplit

from monitor.core.clipping import clipped

_TENANTS = {"common", "organizations", "consumers"}
_TENANT_HOSTS = ("login.microsoftonline.", "login.microsoft.", "login.windows.net", "sts.windows.net")


def tenant_fault(issuer: str) -> str:
    """Return why *issuer* names no single tenant; empty if it does."""
    if "{" in issuer or "}" in issuer:
        return f"{clipped(issuer)!r} has a placeholder for tenants: name the tenant"
    parts = urlsplit(issuer)
    tenant = parts.path.strip("/").partition("/")[0]
    if tenant in _TENANTS and (parts.hostname or "").startswith(_TENANT_HOSTS):
        return f"/{tenant} is for the users of any tenant: name your tenant by its id"
    return ""
