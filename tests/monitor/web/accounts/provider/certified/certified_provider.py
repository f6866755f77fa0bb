"""node's ``oidc-provider`` behind a proxy, and browsers of users that log in there."""

from __future__ import annotations

import contextlib
import html
import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

import httpx
import pytest

from tests.monitor.web.accounts.provider.certified.fault_proxy import RECEIVED, FaultProxy, running_proxy
from tests.node_packages import NotInstalled, installed

HERE = Path(__file__).parent
CLIENT_ID, CLIENT_SECRET = "gridcast", "a secret: with %, + and &"
ALGORITHMS = ("PS256", "ES256", "EdDSA", "HS256")  # of clients of these names, beside RS256
OURS = "http://testserver"
_FORM = re.compile(r'<form[^>]* action="([^"]+)"')
_INPUT = re.compile(r'<input[^>]* name="([^"]+)" value="([^"]*)"')


@dataclass
class CertifiedProvider:
    proxy: FaultProxy
    direct: str  # the provider's origin without the proxy

    @property
    def issuer(self) -> str:
        return self.proxy.origin

    def knows(self, subject: str, **claims: Any) -> None:
        """Let the provider say this about the user *subject* from now on; it calls it so if not otherwise."""
        said = {"preferred_username": subject, **claims}
        httpx.put(f"{self.direct}/users/{quote(subject)}", json=said, timeout=60).raise_for_status()


@dataclass
class ProviderBrowser:
    """The browser of a user, as far as it visits the provider.

    Attributes:
        subject: the user that logs in where the provider asks.
        login: how, beside that: ``ts``, ``amr``, ``acr``.
        prompts: how often the provider has asked.
    """

    subject: str
    login: dict[str, Any] = field(default_factory=dict)
    prompts: int = 0
    is_cancelling: bool = False
    _http: httpx.Client = field(default_factory=lambda: httpx.Client(verify=False, timeout=60))

    def authorize(self, url: str) -> str:
        """Log in at *url*; return the path and query to which the provider sends the browser back."""
        return self.visit(self._http.get(url))

    def log_in(self, browser: Any, start: str = "/login/sso/") -> Any:
        """Log *browser* in at gridcast; return the last answer: that of the start if it leads nowhere."""
        answer = browser.get(start)
        if answer.status_code != 302:
            return answer
        return browser.get(self.authorize(answer["Location"]))

    def visit(self, answer: httpx.Response) -> str:
        """Follow redirects, and submit forms, until one leads to gridcast."""
        while True:
            at = str(answer.url)
            if answer.is_redirect:
                to = urljoin(at, answer.headers["Location"])
                if to.startswith(OURS):
                    parts = urlsplit(to)
                    return f"{parts.path}?{parts.query}"
                answer = self._prompted(to) if "/interaction/" in to else self._http.get(to)
            else:
                form = _FORM.search(answer.text)
                assert form, f"{at} answers {answer.status_code}: {answer.text[:500]}"
                fields = {name: html.unescape(value) for name, value in _INPUT.findall(answer.text)}
                answer = self._http.post(urljoin(at, html.unescape(form[1])), data=fields)

    def log_out(self, url: str) -> str:
        """Log out at *url*; return where the provider sends the browser back."""
        return self.visit(self._http.get(url))

    def _prompted(self, url: str) -> httpx.Response:
        self.prompts += 1
        if self.is_cancelling:
            return self._http.post(url, json={"error": "access_denied"})
        return self._http.post(url, json={"login": {"accountId": self.subject, **self.login}})


@contextmanager
def running_certified_provider() -> Iterator[CertifiedProvider]:
    """Run the provider behind a proxy, or skip: its packages cannot be installed here."""
    try:
        directory = installed(HERE, "certified-provider")
    except NotInstalled as error:
        pytest.skip(f"node's oidc-provider: {error}")
    with running_proxy() as proxy, _node(directory, _configuration(proxy.origin)) as port:
        proxy.target = port
        yield CertifiedProvider(proxy, f"http://127.0.0.1:{port}")


def _configuration(issuer: str) -> Mapping[str, Any]:
    client = {
        "client_secret": CLIENT_SECRET,
        "redirect_uris": [f"{OURS}/login/sso/callback/"],
        "post_logout_redirect_uris": [f"{OURS}/login/"],
        "backchannel_logout_uri": f"{issuer}{RECEIVED}",
        "backchannel_logout_session_required": True,
    }
    special = ({"client_id": name, "id_token_signed_response_alg": name} for name in ALGORITHMS)
    post = {"client_id": "by-form", "token_endpoint_auth_method": "client_secret_post"}
    own: tuple[dict[str, str], ...] = ({"client_id": CLIENT_ID}, post, *special)
    return {"issuer": issuer, "clients": [{**client, **each} for each in own]}


@contextmanager
def _node(directory: Path, configuration: Mapping[str, Any]) -> Iterator[int]:
    """Run the provider in a process group of its own; yield its port."""
    argv = ["node", str(directory / "provider.mjs")]
    with tempfile.TemporaryFile("w+") as errors:
        node = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
        assert node.stdin
        assert node.stdout
        try:
            node.stdin.write(f"{json.dumps(configuration)}\n")
            node.stdin.flush()
            line = node.stdout.readline()
            if not line:
                errors.seek(0)
                pytest.fail(f"node did not start: {errors.read()[-2000:]}")
            yield int(json.loads(line)["port"])
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(node.pid, signal.SIGKILL)
            node.communicate()
