"""The model of storage in virtual time: when does each request end, without waiting for it."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_double, c_int, c_int64, c_uint64, c_void_p
from dataclasses import asdict, fields
from pathlib import Path
from types import TracebackType
from typing import Self, get_type_hints

from monitor.testbed.storage.profile import StorageProfile

_C_TYPES: dict[type, type[c_int64] | type[c_double]] = {int: c_int64, float: c_double}


class _Parameters(ctypes.Structure):
    _fields_ = [
        (field.name, _C_TYPES[get_type_hints(StorageProfile)[field.name]]) for field in fields(StorageProfile)
    ]


class VirtualStorage:
    """A device whose time passes as its caller says. *library* is the compiled model."""

    def __init__(self, library: Path, profile: StorageProfile) -> None:
        self._model = _loaded(library)
        self._handle: int | None = self._model.model_open(_Parameters(**asdict(profile)))
        if self._handle is None:
            raise MemoryError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._model.model_close(self._handle)
        self._handle = None

    def serve(self, file: int, offset: int, size: int, *, is_write: bool, arrival_seconds: float) -> float:
        """Return when the request ends, in seconds. Raises OSError if there is no room for a write."""
        end: float = self._model.model_serve(self._handle, file, offset, size, is_write, arrival_seconds)
        if end < 0.0:
            raise OSError(28, "no space left on the emulated device")
        return end

    def truncate(self, file: int, size: int) -> None:
        """Free the blocks of *file* from *size* on."""
        self._model.model_truncate(self._handle, file, size)

    @property
    def free_bytes(self) -> int:
        return int(self._model.model_free_bytes(self._handle))


def _loaded(library: Path) -> ctypes.CDLL:
    model = ctypes.CDLL(str(library))
    model.model_open.argtypes, model.model_open.restype = [POINTER(_Parameters)], c_void_p
    model.model_close.argtypes, model.model_close.restype = [c_void_p], None
    model.model_serve.argtypes = [c_void_p, c_uint64, c_int64, c_int64, c_int, c_double]
    model.model_serve.restype = c_double
    model.model_truncate.argtypes, model.model_truncate.restype = [c_void_p, c_uint64, c_int64], None
    model.model_free_bytes.argtypes, model.model_free_bytes.restype = [c_void_p], c_int64
    return model
