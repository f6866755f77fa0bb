"""A row whose object is gone has a name all the same: admin pages show it."""

from __future__ import annotations

import uuid

import pytest
from django.apps import apps
from django.db import models

WITH_FREE_KEYS = [
    model
    for model in apps.get_app_config("monitor").get_models()
    if any(getattr(column, "db_constraint", True) is False for column in model._meta.concrete_fields)
]


@pytest.mark.django_db
@pytest.mark.parametrize("model", WITH_FREE_KEYS, ids=lambda model: model.__name__)
def test_a_row_whose_objects_are_gone_has_a_name(model: type[models.Model]) -> None:
    row = model()
    for column in model._meta.concrete_fields:
        if not isinstance(column, models.ForeignKey):
            continue
        if getattr(column, "db_constraint", True):
            setattr(row, column.name, column.related_model())
        else:
            gone = uuid.uuid4() if isinstance(column.target_field, models.UUIDField) else 1
            setattr(row, column.attname, gone)
    assert str(row)
