"""Create many models at once: Django renders the models of the state again after each operation."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from django.db.migrations.operations import CreateModel
from django.db.migrations.operations.base import Operation

if TYPE_CHECKING:
    from django.db.backends.base.schema import BaseDatabaseSchemaEditor
    from django.db.migrations.state import ProjectState


def in_batches(operations: Iterable[Operation]) -> Iterator[Operation]:
    """Yield *operations*, with one CreateModels for each group of consecutive CreateModel."""
    for is_create, group in itertools.groupby(operations, lambda each: type(each) is CreateModel):
        members = [*group]
        yield from [CreateModels(members)] if is_create else members


class CreateModels(Operation):
    """Creates models in order; the models of the state are rendered once for all."""

    reversible = False

    def __init__(self, operations: list[Operation]) -> None:
        self.operations = operations

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        vars(state).pop("apps", None)  # rendered again when it is next read
        for operation in self.operations:
            operation.state_forwards(app_label, state)

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        for operation in self.operations:
            operation.database_forwards(app_label, schema_editor, from_state, to_state)

    def describe(self) -> str:
        return "; ".join(operation.describe() for operation in self.operations)
