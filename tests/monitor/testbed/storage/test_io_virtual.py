from __future__ import annotations

from pathlib import Path

import pytest

from forecasting.elsewhere.prediction import predict
from forecasting.elsewhere.runs import IoRun, SystemRuns
from monitor.testbed.storage import profiles
from monitor.testbed.storage.virtual import VirtualStorage
from tests.monitor.testbed.storage.io_virtual import (
    BINS,
    PART_BYTES,
    SHARINGS,
    TASKS,
    Program,
    Sharing,
    jittered,
    madbench,
    play,
)


def played(library: Path, name: str, program: Program, day: int = 0) -> IoRun:
    with VirtualStorage(library, profiles.load(name)) as storage:
        return play(storage, program, 86_400.0 * day)


@pytest.mark.parametrize("sharing", SHARINGS)
def test_all_bytes_are_moved_and_the_same_calls_take_the_same_time(
    model_library: Path, sharing: Sharing
) -> None:
    run = played(model_library, "xeon-eide", madbench(sharing))
    moved = TASKS * BINS * PART_BYTES
    assert {name: time.moved_bytes for name, time in run.classes.items()} == {
        "read": 2 * moved,
        "write": 2 * moved,
    }
    assert played(model_library, "xeon-eide", madbench(sharing)) == run


@pytest.mark.parametrize("sharing", SHARINGS)
def test_a_replay_predicts_a_device_where_the_program_never_ran(
    model_library: Path, sharing: Sharing
) -> None:
    program = madbench(sharing)
    reference, target = (
        SystemRuns(
            name,
            [played(model_library, name, jittered(program, day), day) for day in (1, 2)],
            [played(model_library, name, jittered(program, 3), day) for day in (1, 2)],
        )
        for name in ("p690-raid5", "xeon-eide")
    )
    prediction = predict(reference, SystemRuns(target.name, (), target.replays))
    actual = target.applications[0].seconds
    assert prediction.seconds == pytest.approx(actual, rel=0.05)
    assert prediction.quantile(0.05) < actual < prediction.quantile(0.95)
