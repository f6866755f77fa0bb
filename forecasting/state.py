"""What a forecaster knows, as bytes and back: microseconds each way, and the same answers afterwards.

A state is the typed fields of dataclasses, so nothing is written for a new method. It begins with the format
and what it is of: which classes, with which fields, in which version (``VERSION``, 1 where a class says
none). One that was written by others than today's is refused, and its owner begins anew from the history. A
state is trusted as much as the depot that it lies in: its fields are checked for their types, not for their
sense.
"""

from __future__ import annotations

import hashlib
from collections import UserDict, deque
from dataclasses import is_dataclass
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec
import numpy as np

from forecasting import methods
from forecasting.base import ForecastMethod, OutdatedState
from forecasting.memo import Memo

FORMAT = 1

T = TypeVar("T")


class MethodsByName(UserDict[str, ForecastMethod]):
    """Methods by the names of their files; kept with those, since which there are is up to the folder."""


def fingerprint(kind: type) -> bytes:
    """Eight bytes that change whenever *kind*, or anything that it keeps, has other fields or raises its
    ``VERSION``; and where it keeps methods, when one comes or goes."""
    if kind not in _fingerprints:
        found: dict[str, object] = {}
        _describe(kind, found)
        said = repr((FORMAT, sorted(found.items())))
        _fingerprints[kind] = hashlib.sha256(said.encode()).digest()[:8]
    return _fingerprints[kind]


_fingerprints: dict[type, bytes] = {}


def _describe(kind: Any, found: dict[str, object], name: str = "") -> None:
    """Put versions and fields of *kind*, and of what it is made of, into *found*, by name."""
    if kind is MethodsByName:
        for method in methods.names():
            _describe(methods.load(method), found, f"method {method}")
    elif is_dataclass(kind) or hasattr(kind, "_fields"):
        name = name or kind.__qualname__
        if name not in found:
            hints = get_type_hints(kind)
            found[name] = getattr(kind, "VERSION", 1), sorted(hints)
            for hint in hints.values():
                _describe(hint, found)
    for part in get_args(kind):
        _describe(part, found)


def dump(whole: object) -> bytes:
    """Return all that *whole*, a dataclass of fields that can be kept, knows."""
    return fingerprint(type(whole)) + _encoder.encode(whole)


def load(kind: type[T], state: bytes | memoryview) -> T:
    """Return the *kind* that ``dump`` made *state* from.

    Raises:
        OutdatedState: its classes have changed since, or *state* is no state of *kind*.
    """
    view = memoryview(state)
    if view[:8] != fingerprint(kind):
        raise OutdatedState(f"a state of {len(view)} bytes was kept by other methods than today's")
    try:
        found: T = _decoder(kind).decode(view[8:])
    except (msgspec.MsgspecError, ValueError, TypeError, LookupError) as error:
        raise OutdatedState(
            f"a state of {len(view)} bytes cannot be read as {kind.__name__}: {error}"
        ) from error
    return found


def _kept(value: object) -> object:
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, deque):
        return list(value)
    if isinstance(value, MethodsByName):
        return {name: _encoder.encode(method) for name, method in value.items()}
    if isinstance(value, Memo):
        return None
    raise NotImplementedError(f"a {type(value).__name__} cannot be kept")


def _found(kind: type, kept: Any) -> object:
    if kind is MethodsByName:
        return MethodsByName({name: _decoder(methods.load(name)).decode(one) for name, one in kept.items()})
    if get_origin(kind) is np.ndarray:
        dtype, shape, numbers = kept
        return np.frombuffer(numbers, dtype=dtype).reshape(shape).copy()  # writable
    if (get_origin(kind) or kind) is deque:
        return deque(kept)
    if (get_origin(kind) or kind) is Memo:
        return Memo()
    raise NotImplementedError(f"a {kind} cannot be kept")


_encoder = msgspec.msgpack.Encoder(enc_hook=_kept)


_decoders: dict[type, msgspec.msgpack.Decoder[Any]] = {}


def _decoder(kind: type) -> msgspec.msgpack.Decoder[Any]:
    if kind not in _decoders:
        _decoders[kind] = msgspec.msgpack.Decoder(kind, dec_hook=_found)
    return _decoders[kind]
