"""The preloaded library that asks for tokens."""

from __future__ import annotations

from pathlib import Path

from reporters.compiled import CannotCompile
from reporters.preloaded import preloaded
from reporters.tokens.server import TokensUnavailable


def library(cache: Path) -> Path:
    """Return the library for this machine, compiled into *cache* unless it is there.

    Raises:
        TokensUnavailable: there is no C compiler, or it fails; or *cache* cannot be written.
    """
    try:
        return preloaded(cache, "iotokens")
    except CannotCompile as error:
        raise TokensUnavailable(str(error)) from None
    except OSError as error:
        raise TokensUnavailable(f"cannot keep the library in {cache}: {error.strerror}") from None
