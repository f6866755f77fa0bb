"""The SQL of all series as arrays: their keys, suites, sites and probes.

A page that counts over all series decides with them which ones its reader may see. As rows of 100,000 series
they would take ten times as long to read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from monitor.core.db import binary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Keys = NDArray[np.int64]

_MOST_IN_TABLE = 5_000_000
_SUITES = "SELECT string_agg(int8send(id) || int8send(suite_id), ''::bytea) FROM monitor_series"
_RESOURCES = "SELECT string_agg(int8send(series_id) || int8send(resource_id), ''::bytea) FROM monitor_binding"
_SITES = "SELECT string_agg(int8send(id) || int8send(site_id), ''::bytea ORDER BY id) FROM monitor_resource"
# Of the counts of latest states, while no series waits to be counted again because its configuration changed.
_COUNTED = """
SELECT string_agg(int8send(suite_id) || int8send(site_id), ''::bytea ORDER BY suite_id, site_id) FROM (
    SELECT DISTINCT suite_id, site_id FROM monitor_standingcount
    WHERE site_id <> 0 AND n <> 0 AND NOT EXISTS (SELECT FROM monitor_standingchange)
) AS counted
"""
_PROBES = b"SELECT probe, string_agg(int8send(id), ''::bytea) FROM monitor_series GROUP BY probe"


def keys_of(sql: str, parameters: Sequence[object]) -> Keys:
    """Return the keys that the query *sql*, with Django's placeholders, selects."""
    statement = f"SELECT string_agg(int8send(id), ''::bytea) FROM ({sql}) AS selected (id)"  # noqa: S608
    with binary.cursor() as cursor:
        row = cursor.execute(statement.encode(), parameters, binary=True).fetchone()
    return _numbers(row and row[0])


def suites_of_series() -> tuple[Keys, Keys]:
    """Return the keys of all series, in order, and the suite of each."""
    keys, suites = _pairs(_SUITES)
    order = np.argsort(keys)
    return keys[order], suites[order]


def sites_of_series() -> tuple[Keys, Keys]:
    """Return series and the site that each uses; a series with several bindings is repeated."""
    series, resources = _pairs(_RESOURCES)
    known, sites = _pairs(_SITES)
    return series, sites[np.searchsorted(known, resources)]


def sites_of_suites() -> list[tuple[int, int]]:
    """Return pairs of a suite and a site that its series use, in order."""
    suites, sites = _pairs(_COUNTED)
    if not len(suites):
        keys, suite_of = suites_of_series()
        series, sites = sites_of_series()
        at = positions(keys, series)
        most = int(sites.max(initial=0)) + 1
        pairs = np.flatnonzero(np.bincount(suite_of[at[at >= 0]] * most + sites[at >= 0]))
        suites, sites = np.divmod(pairs, most)
    return list(zip(suites.tolist(), sites.tolist(), strict=True))


def series_of_probes() -> dict[str, Keys]:
    """Return the keys of the series of each probe."""
    with binary.cursor() as cursor:
        rows = cursor.execute(_PROBES, binary=True).fetchall()
    return {probe: _numbers(packed) for probe, packed in rows}


def positions(keys: Keys, wanted: Keys) -> Keys:
    """Return the position of each of *wanted* among *keys*, which are in order; -1 for those not there."""
    if not len(keys):
        return np.full(len(wanted), -1)
    if keys[-1] < _MOST_IN_TABLE:  # ten times as fast as a search
        table = np.full(keys[-1] + 2, -1)
        table[keys] = np.arange(len(keys))
        in_table: Keys = table[np.minimum(wanted, keys[-1] + 1)]
        return in_table
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, at, -1)


def _pairs(statement: str) -> tuple[Keys, Keys]:
    (packed,) = binary.row(statement, {})
    pairs = _numbers(packed).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _numbers(packed: bytes | None) -> Keys:
    return np.frombuffer(packed or b"", ">i8").astype(np.int64)
