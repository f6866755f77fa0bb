"""Who the agent is, and who its server is: what an enrolment leaves at the site."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from reporters.fields import Fields, Unfit
from reporters.remote.state_directory import IDENTITY, StateDirectory, StateError

KEY_PATTERN = r"key-[0-9a-f]{16}-[a-z0-9_]{1,40}"
_MAX_CHARACTERS = 4096
_FINGERPRINT = "[0-9a-f]{64}"


@dataclass(frozen=True)
class ReporterIdentity:
    """One file, so that an enrolment replaces the keys of both sides at once.

    Attributes:
        method: how both sides sign, a module of ``signing``.
        key_file: name of the file with the private key.
        server_key: the server's public key, as *method* writes it.
        proxy: URL of the HTTP proxy, ``none``, or empty: that of the environment.
    """

    url: str
    reporter: str
    method: str
    key_file: str
    key_fingerprint: str
    server_key: str
    server_fingerprint: str
    exchange_seconds: float
    ca_file: str
    proxy: str


def load(state: StateDirectory) -> ReporterIdentity:
    """Return the identity in *state*.

    Raises:
        StateError: the reporter is not enrolled, or the file is damaged.
    """
    document = state.read_object(IDENTITY)
    if document is None:
        raise StateError(f"the reporter of {state.path} is not enrolled: run `enrol URL CODE` first")
    fields = Fields(document)
    try:
        return ReporterIdentity(
            url=fields.text("url", maximum=_MAX_CHARACTERS),
            reporter=fields.text("reporter", maximum=_MAX_CHARACTERS, empty=False),
            method=fields.text("method", maximum=_MAX_CHARACTERS),
            key_file=fields.text("key_file", pattern=KEY_PATTERN),
            key_fingerprint=fields.text("key_fingerprint", pattern=_FINGERPRINT),
            server_key=fields.text("server_key", maximum=_MAX_CHARACTERS),
            server_fingerprint=fields.text("server_fingerprint", pattern=_FINGERPRINT),
            exchange_seconds=fields.number("exchange_seconds", minimum=0),
            ca_file=fields.text("ca_file", maximum=_MAX_CHARACTERS),
            proxy=fields.text("proxy", maximum=_MAX_CHARACTERS),
        )
    except Unfit as error:
        raise StateError(f"cannot use {state.path / IDENTITY}: {error}; enrol again") from None


def save(state: StateDirectory, identity: ReporterIdentity) -> None:
    """Write *identity* to *state*. Raises StateError if the file cannot be written."""
    state.write_object(IDENTITY, asdict(identity))
