"""The command ``elsewhere``: predict I/O times on systems from replays, and score the predictions."""

from __future__ import annotations

import json
import statistics
from argparse import Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from forecasting.commands import Subparsers
from forecasting.elsewhere.abstained import Code, NoPrediction
from forecasting.elsewhere.evaluation import LEVEL, PairErrors, evaluate
from forecasting.elsewhere.prediction import predict
from forecasting.elsewhere.runs import SystemRuns
from forecasting.reading import io_runs

DESCRIPTION = """\
Predicts how long the input and output of an application takes on a system where it never ran: from its runs
on a reference, and from replays of its calls on both systems. Prints the errors of each pair of systems on
which both ran, and predictions for systems with replays only."""
EPILOG = """\
FILE.csv has the columns system, workload, kind (application or replay), class (of calls, such as read or
write), started_at, seconds and bytes. The rows of a run have the same system, workload, kind and started_at,
and one row for each class. Where bytes are given, times count per byte.

A run is predicted from the run on the reference and the replays that are nearest in time, at most a day or
the mean time between replays away. The prediction is refused as unfaithful if application / replay is outside
0.8 to 1.25, or its logarithm scatters by more than 0.2, on any system but the target."""
_HEADING = (
    f"{'reference':<24}{'target':<24}{'runs':>6}{'median error':>14}{'of means':>10}{'in 90 %':>9}  by class"
)


@dataclass(frozen=True)
class PredictedSystem:
    """A prediction for a system on which the application never ran."""

    reference: str
    target: str
    seconds: float | None = None
    low: float | None = None
    high: float | None = None
    refused: Code | None = None
    reason: str = ""


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "elsewhere",
        help="predict I/O times on other systems from replays",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE.csv")
    parser.add_argument("--json", action="store_true", help="print one document instead of a table")


def run(arguments: Namespace) -> int:
    workloads = io_runs.read(arguments.file)
    evaluated = {
        workload: evaluate([system for system in systems if system.applications])
        for workload, systems in workloads.items()
    }
    predicted = {workload: _predictions(systems) for workload, systems in workloads.items()}
    if arguments.json:
        print(json.dumps(_document(evaluated, predicted), indent=2, allow_nan=False))
    else:
        print("\n".join(_lines(arguments.file, evaluated, predicted)))
    return 0


def _predictions(systems: Sequence[SystemRuns]) -> list[PredictedSystem]:
    """Return the predictions for the systems with replays only, from each system with the application."""
    known = [system for system in systems if system.applications]
    return [
        _prediction(reference, target, [system for system in known if system is not reference])
        for target in systems
        if not target.applications
        for reference in known
    ]


def _prediction(reference: SystemRuns, target: SystemRuns, others: Sequence[SystemRuns]) -> PredictedSystem:
    try:
        prediction = predict(reference, target, others)
    except NoPrediction as refused:
        return PredictedSystem(reference.name, target.name, refused=refused.code, reason=str(refused))
    low, high = (prediction.quantile((1.0 + side * LEVEL) / 2.0) for side in (-1, 1))
    return PredictedSystem(reference.name, target.name, prediction.seconds, low, high)


def _document(
    evaluated: Mapping[str, Sequence[PairErrors]], predicted: Mapping[str, Sequence[PredictedSystem]]
) -> dict[str, object]:
    return {
        "level": LEVEL,
        "workloads": {
            workload: {
                "pairs": [asdict(each) for each in errors],
                "predicted": [asdict(each) for each in predicted[workload]],
            }
            for workload, errors in evaluated.items()
        },
    }


def _lines(
    file: str,
    evaluated: Mapping[str, Sequence[PairErrors]],
    predicted: Mapping[str, Sequence[PredictedSystem]],
) -> Iterator[str]:
    for number, (workload, errors) in enumerate(evaluated.items()):
        if number:
            yield ""
        yield f"{file}, {workload}"
        if errors:
            yield _HEADING
            yield from map(_pair_line, errors)
            yield from _summary(errors)
        yield from map(_predicted_line, predicted[workload])


def _pair_line(errors: PairErrors) -> str:
    names = f"{errors.reference:<24}{errors.target:<24}"
    if errors.median_error is None or errors.mean_error is None or errors.coverage is None:
        return f"{names}{errors.refused}: {errors.reason}"
    of_classes = ", ".join(f"{name} {error:+.1%}" for name, error in (errors.class_errors or {}).items())
    of_runs = f"{errors.n:>6}{errors.median_error:>+14.1%}{errors.mean_error:>+10.1%}{errors.coverage:>9.0%}"
    return f"{names}{of_runs}  {of_classes}"


def _summary(errors: Sequence[PairErrors]) -> Iterator[str]:
    scored = [each for each in errors if each.mean_error is not None and each.coverage is not None]
    if scored:
        error = statistics.fmean(abs(each.mean_error or 0.0) for each in scored)
        coverage = statistics.fmean(each.coverage or 0.0 for each in scored)
        yield f"mean absolute error of means {error:.1%}; {coverage:.0%} of the runs in their 90 % intervals"


def _predicted_line(row: PredictedSystem) -> str:
    names = f"{row.target} from {row.reference}"
    if row.seconds is None:
        return f"{names}: {row.refused}: {row.reason}"
    return f"{names}: {row.seconds:.4g} s, 90 % interval {row.low:.4g} to {row.high:.4g} s"
