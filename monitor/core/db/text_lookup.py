"""A lookup for texts: ``name__has_text``, without regard to case, in any place.

``lower`` by the collation "C" reads 100,000 names in two thirds of the time of Django's ``icontains``, which
converts each text to upper case by the rules of the database's locale. Names are ASCII.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import CharField, Lookup, TextField

if TYPE_CHECKING:
    _TextLookup = Lookup[str]
else:
    _TextLookup = Lookup  # no generic class outside of the type checker


@CharField.register_lookup
@TextField.register_lookup
class HasText(_TextLookup):
    lookup_name = "has_text"

    def get_prep_lookup(self) -> str:
        escaped = str(self.rhs).replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
        return f"%{escaped}%"

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, Any]:
        left, left_parameters = self.process_lhs(compiler, connection)
        right, right_parameters = self.process_rhs(compiler, connection)
        sql = f'lower(({left}) COLLATE "C") LIKE lower({right} COLLATE "C")'
        return sql, (*left_parameters, *right_parameters)
