"""The base of models of entries of a file."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, StringConstraints, model_validator

Title = Annotated[str, StringConstraints(max_length=200)]


def none_to_empty(value: Any) -> Any:
    return {} if value is None else value


class Entry(BaseModel):
    """Base of all entries."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _accept_empty(cls, value: Any) -> Any:
        """Accept ``main:`` as ``main: {}``."""
        return none_to_empty(value)
