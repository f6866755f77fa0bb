"""How tests read what importers read, and where the real data lie that some of them need."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from monitor import importers
from monitor.importers.base import Item, LeftOut, Malformed, Measured
from monitor.importers.opening import opened

DATA = Path(__file__).parent / "data"
SHARED = Path(__file__).resolve().parents[4] / "shared" / "data"

needs_shared_data = pytest.mark.skipif(
    not SHARED.is_dir(), reason="the real data (../shared/data beside the checkout) are not on this machine"
)


def read(kind: str, data: str | bytes, **options: str) -> list[Item]:
    stream = io.BytesIO(data.encode() if isinstance(data, str) else data)
    return list(importers.made(kind, options).read(stream))


def runs(items: list[Item]) -> list[Measured]:
    return [item for item in items if isinstance(item, Measured)]


def refused(items: list[Item]) -> list[str]:
    return [str(item) for item in items if isinstance(item, Malformed)]


def left_out(items: list[Item]) -> list[str]:
    return [item.why for item in items if isinstance(item, LeftOut)]


def read_shared(kind: str, name: str, *, most: int | None = None, **options: str) -> list[Item]:
    """What is in a file of the real data, at *most* so many items."""
    with opened(str(SHARED / name), sys.stdin.buffer) as stream:
        return list(islice(importers.made(kind, options).read(stream), most))


def lines_of(name: str, wanted: Callable[[str], bool] = bool, *, most: int | None = None) -> list[str]:
    """Lines of a file of the real data, read without anything of ours."""
    with gzip.open(SHARED / name, "rt") as lines:
        return list(islice(filter(wanted, lines), most))


def metrics(run: Measured) -> dict[str, tuple[float, str]]:
    return {metric.name: (metric.value, metric.unit) for metric in run.metrics}
