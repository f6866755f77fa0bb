"""Create all models at once: Django renders the models of the state again after each operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from django.db.migrations.operations import CreateModel
from django.db.migrations.operations.base import Operation

if TYPE_CHECKING:
    from django.db.backends.base.schema import BaseDatabaseSchemaEditor
    from django.db.migrations.state import ProjectState


class CreateModels(Operation):
    """Creates models whose foreign keys may refer to each other; their state is rendered once for all.

    The tables of some models are *partitioned*: those are created by SQL, by name of the model.
    """

    reversible = False

    def __init__(self, models: Sequence[CreateModel], partitioned: Mapping[str, str]) -> None:
        self.models, self.partitioned = models, partitioned

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        vars(state).pop("apps", None)  # rendered again when it is next read
        for model in self.models:
            model.state_forwards(app_label, state)

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        for model in self.models:
            if model.name not in self.partitioned:
                model.database_forwards(app_label, schema_editor, from_state, to_state)
                continue
            schema_editor.execute(self.partitioned[model.name])
            rendered = to_state.apps.get_model(app_label, model.name)
            for index in model.options.get("indexes", ()):
                schema_editor.add_index(rendered, index)
            for constraint in model.options.get("constraints", ()):
                schema_editor.add_constraint(rendered, constraint)

    def describe(self) -> str:
        return "; ".join(model.describe() for model in self.models)
