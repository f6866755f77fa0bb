"""The storage of a resource in a grid file: what it costs, and what it is made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Self

from pydantic import Field, StringConstraints, ValidationError, model_validator

from monitor.core.yamlfile.entry import Entry

MOST = 1e15
PART_RATES = (
    "read_bytes_per_second",
    "write_bytes_per_second",
    "read_operations_per_second",
    "write_operations_per_second",
)

Positive = Annotated[float, Field(gt=0, le=MOST)]
Word = Annotated[str, StringConstraints(min_length=1, max_length=50, pattern=r"^[-a-zA-Z0-9_]+$")]


class StoragePartsEntry(Entry):
    """What a storage area is made of: its efficiency is its rate over that of all parts."""

    count: Annotated[int, Field(ge=1, le=1_000_000)] = Field(description="Number of parts, such as drives.")
    resource: Word | None = Field(
        None, description="Resource with one such part, one of `resources`: its measured rates count."
    )
    read_bytes_per_second: Positive | None = Field(
        None, description="Rate of one part, if no resource has one: large sequential reads."
    )
    write_bytes_per_second: Positive | None = Field(None, description="Large sequential writes.")
    read_operations_per_second: Positive | None = Field(None, description="Small random reads.")
    write_operations_per_second: Positive | None = Field(None, description="Small random writes.")

    @model_validator(mode="after")
    def _require_a_rate(self) -> Self:
        if self.resource is None and not any(getattr(self, name) for name in PART_RATES):
            raise ValueError("expected the resource with one part, or a rate of one part")
        return self


class StorageEntry(Entry):
    """The storage area of a resource's scratch directory (docs/storage.md)."""

    medium: Annotated[str, StringConstraints(max_length=50)] = Field(
        "", description="What it stores data on, such as `flash`.", examples=["disk"]
    )
    capacity_gb: Positive | None = Field(None, description="Capacity, 10^9 bytes.")
    price: Positive | None = Field(None, description="Price, in the same currency for all areas.")
    power_watts: Positive | None = Field(None, description="Power under load, watts.")
    endurance_cycles: Positive | None = Field(
        None, description="How often its whole capacity can be written."
    )
    parts: StoragePartsEntry | None = Field(None, description="What it is made of.")

    @model_validator(mode="after")
    def _require_a_key(self) -> Self:
        if not self.model_dump(exclude_defaults=True):
            raise ValueError("expected at least one key, such as medium")
        return self


def storage_faults(storage: Any) -> Iterator[str]:
    """Yield what is wrong with *storage*, as a form shows it."""
    try:
        StorageEntry.model_validate(storage)
    except ValidationError as error:
        for fault in error.errors():
            place = ".".join(map(str, fault["loc"]))
            yield f"{place}: {fault['msg']}" if place else fault["msg"]
