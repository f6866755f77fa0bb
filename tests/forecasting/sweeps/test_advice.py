from __future__ import annotations

from forecasting.sweeps.advice import advice
from forecasting.sweeps.sweet_spot import sweet_spot
from tests.forecasting.sweeps.stream_profiles import FLAT, PUBLISHED, swept


def test_where_a_limit_helps_each_place_has_its_setting() -> None:
    spot = sweet_spot(swept(PUBLISHED["xeon-eide"], seed=1))
    assert spot.gain.streams == (1, 1)
    tokens, mpi, slurm, bfq, lustre = advice(spot)
    assert "tokens serve AREA --readers 1 --writers 1" in tokens
    assert "romio_cb_read enable, cb_nodes 1" in mpi
    assert "romio_cb_write enable, cb_nodes 1" in mpi
    assert "Licenses=AREA:1 in slurm.conf" in slurm
    assert "low_latency 0" in bfq
    assert "on each CPU partition" in lustre


def test_a_direction_without_a_limit_keeps_its_usual_hints() -> None:
    rows = [row for row in swept(PUBLISHED["xeon-eide"], seed=1) if row.writers == 4]
    assert "romio_cb_write automatic for files that are written" in advice(sweet_spot(rows))[1]


def test_where_no_limit_helps_the_advice_is_to_set_none() -> None:
    (line,) = advice(sweet_spot(swept(FLAT, seed=1, passes=9, noise=0.005)))
    assert line.startswith("set no limit")


def test_an_undecided_sweep_asks_for_more_passes() -> None:
    spot = sweet_spot(swept(PUBLISHED["p690-scsi"], seed=4, passes=3, noise=0.1))
    assert advice(spot) == [
        f"set no limit until more passes decide whether it helps: about {spot.passes_needed}"
    ]
