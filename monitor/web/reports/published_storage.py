"""The published numbers about storage: what it is good for, I/O times elsewhere, and limits of streams.

Sources: the flash thesis (characterisation and prediction), the prediction paper, and the throttling paper. A
number that is not here was not published, or is not known to us.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

SWEEP_FACTORS: Mapping[str, int] = {
    "stripes": 3,
    "widths": 5,
    "raw or XFS": 2,
    "read-ahead": 2,
    "schedulers": 4,
    "tests": 14,
}
SWEEP_PASSES = 5
SWEEP_RUN_SECONDS = 10.0
SWEEP_DAYS = 4.0
SWEEP_OUTLIERS = 1155
SWEEP_BEST = "64 or 256 KiB stripes; noop at 4 KiB, deadline at 4 MiB random"
SWEEP_RUNS = prod(SWEEP_FACTORS.values()) * SWEEP_PASSES


class Rates(NamedTuple):
    """MB/s of large sequential, operations a second of small random I/O."""

    write_mb: float
    read_mb: float
    random_write: float
    random_read: float


class PublishedRates(NamedTuple):
    """*profile* is the emulated device that stands for the system; empty: none does."""

    system: str
    rates: Rates
    profile: str = ""


DRIVES = 16
ONE_DRIVE = PublishedRates("one drive", Rates(203, 261, 10_724, 39_756), "flash")
# The published efficiencies fit these rates.
SPECIFIED_DRIVE = PublishedRates("one drive, by its specification", Rates(170, 250, 3_300, 35_000))
RAID_CONTROLLER = PublishedRates(
    "16 drives, RAID controller, 64 KiB", Rates(1179, 2199, 3749, 87_563), "flash-raid0-16"
)
SOFTWARE_RAID = PublishedRates("16 drives, software RAID", Rates(1395, 2119, 19_784, 254_808))
NO_RAID = PublishedRates("16 drives, no RAID", Rates(2958, 3225, 143_649, 562_365))
MEMORY = PublishedRates("memory", Rates(11_264, 42_139, 2_719_635, 4_495_592), "ram")
RATES: Sequence[PublishedRates] = (
    ONE_DRIVE,
    SPECIFIED_DRIVE,
    RAID_CONTROLLER,
    PublishedRates("16 drives, RAID controller, 128 KiB", Rates(1275, 2056, 3121, 79_639)),
    SOFTWARE_RAID,
    NO_RAID,
    MEMORY,
)


class TuningStep(NamedTuple):
    """Random reads a second over those before tuning, and the system whose rate the step fits."""

    factor: float
    fits: PublishedRates


BASELINE_RANDOM_READ = 46_000.0  # of 16 drives, before tuning
TUNING_STEPS: Sequence[TuningStep] = (
    TuningStep(1.9, RAID_CONTROLLER),
    TuningStep(5.6, SOFTWARE_RAID),
    TuningStep(12.4, NO_RAID),
    TuningStep(98.8, MEMORY),
)

Span = tuple[float, float]  # of a figure that was published from a lowest to a highest value


class PublishedMerit(NamedTuple):
    """Capacity, and figures per dollar and per GB, of one system."""

    system: str
    gb: float
    mb_per_dollar: float
    dollars_per_gb: float
    iops_per_dollar: float | Span
    iops_per_gb: float | Span


MERITS: Sequence[PublishedMerit] = (
    PublishedMerit("HDD", 2048, 0.4, 0.15, (0.4, 1.0), (0.05, 0.1)),
    PublishedMerit("DASH I/O node", 1024, 0.16, 19.43, 28, 549),
    PublishedMerit("DASH supernode", 768, 0.49, 112.63, 52, 5853),
    PublishedMerit("Fusion-io", 160, 0.12, 41.06, 18, 725),
    PublishedMerit("Sun F5100", 480, 0.07, 90.62, 9, 828),
)


class PublishedPower(NamedTuple):
    """Watts of one device that works and of one that waits, and random reads a second for each watt."""

    device: str
    gb: float
    active_watts: float
    idle_watts: float
    iops_per_watt: float


POWERS: Sequence[PublishedPower] = (
    PublishedPower("memory", 14, 70, 35, 307),
    PublishedPower("flash", 64, 2.4, 0.1, 712),
    PublishedPower("disk", 2000, 11, 7, 35),
)


class PublishedApplication(NamedTuple):
    """Seconds of an application in memory, on flash and on a disk."""

    name: str
    memory: float | None
    flash: float
    disk: float


APPLICATIONS: Sequence[PublishedApplication] = (
    PublishedApplication("MR-BFS, I/O", 854, 1862, 4444),
    PublishedApplication("MR-BFS, total", 1917, 3130, 5752),
    PublishedApplication("PTF, look-ups", None, 0.011, 1.361),
    PublishedApplication("PTF, queries", None, 100, 7785),
    PublishedApplication("BiologicalNetworks, query 1", 11.338, 11.120, 16.090),
    PublishedApplication("BiologicalNetworks, query 2", 62.850, 176.873, 226.023),
    PublishedApplication("BiologicalNetworks, query 3", 0.003, 0.011, 0.558),
    PublishedApplication("BiologicalNetworks, query 4", 17.957, 24.879, 27.661),
    PublishedApplication("BiologicalNetworks, query 5", 0.211, 0.495, 1.191),
)


class PublishedError(NamedTuple):
    """Errors of predicted I/O times in per cent; positive: predicted too long."""

    interface: str
    system: str
    read: float
    write: float
    total: float


PREDICTION_ERRORS: Sequence[PublishedError] = (
    PublishedError("POSIX", "Diamond", -68.68, 17.81, -45.38),
    PublishedError("POSIX", "Sapphire", 18.27, 1.61, 12.75),
    PublishedError("POSIX", "Pingo", -62.82, 2.38, -16.85),
    PublishedError("POSIX", "Einstein", 37.60, 11.46, 13.69),
    PublishedError("POSIX", "Mana", 41.23, 24.94, 30.06),
    PublishedError("POSIX", "Jaguar", 16.46, 0.00, 8.17),
    PublishedError("MPI-IO", "Diamond", -64.55, 8.42, -42.87),
    PublishedError("MPI-IO", "Sapphire", 16.36, 5.07, 12.55),
    PublishedError("MPI-IO", "Pingo", -70.61, -1.99, -22.08),
    PublishedError("MPI-IO", "Einstein", 39.02, 5.06, 17.59),
    PublishedError("MPI-IO", "Mana", 54.55, 56.34, 55.74),
    PublishedError("MPI-IO", "Jaguar", 3.76, -20.83, -8.65),
)
FLASH_ERRORS: Sequence[PublishedError] = (
    PublishedError("POSIX", "flash node", -20.66, -8.59, -14.79),
    PublishedError("MPI-IO", "flash node", -19.92, -14.76, -17.50),
)
MEAN_ERRORS = PublishedError("both", "mean of absolute errors", 41.16, 12.99, 23.87)


class PublishedVariation(NamedTuple):
    """Relative standard deviations in per cent: of MADbench's reads, writes and totals, then of IOR's."""

    interface: str
    system: str
    madbench: tuple[float, float, float]
    ior: tuple[float, float, float]


VARIATIONS: Sequence[PublishedVariation] = (
    PublishedVariation("POSIX", "Jade", (4.32, 6.15, 4.78), (5.94, 9.52, 6.48)),
    PublishedVariation("POSIX", "Diamond", (5.06, 12.34, 3.03), (30.12, 4.90, 9.80)),
    PublishedVariation("POSIX", "Sapphire", (9.41, 8.48, 8.48), (4.64, 6.23, 4.90)),
    PublishedVariation("POSIX", "Pingo", (6.55, 4.01, 4.50), (14.62, 12.50, 12.23)),
    PublishedVariation("POSIX", "Einstein", (6.89, 4.34, 5.19), (6.12, 4.33, 4.84)),
    PublishedVariation("POSIX", "Mana", (1.61, 4.37, 2.77), (77.01, 19.70, 21.26)),
    PublishedVariation("POSIX", "Jaguar", (7.61, 15.90, 11.25), (23.34, 32.51, 20.30)),
    PublishedVariation("MPI-IO", "Jade", (3.79, 5.56, 4.19), (7.21, 9.52, 7.88)),
    PublishedVariation("MPI-IO", "Diamond", (5.60, 16.96, 2.05), (38.54, 5.44, 10.75)),
    PublishedVariation("MPI-IO", "Sapphire", (4.26, 5.23, 4.55), (7.49, 6.39, 6.84)),
    PublishedVariation("MPI-IO", "Pingo", (5.44, 3.22, 3.27), (15.40, 3.32, 1.89)),
    PublishedVariation("MPI-IO", "Einstein", (10.27, 12.05, 11.09), (3.73, 6.56, 4.33)),
    PublishedVariation("MPI-IO", "Mana", (2.02, 4.67, 3.13), (101.37, 45.99, 41.11)),
    PublishedVariation("MPI-IO", "Jaguar", (6.07, 16.15, 9.44), (25.17, 5.93, 13.36)),
)


@dataclass(frozen=True)
class ThrottlingTable:
    """Seconds of MADbench by (writers, readers); *columns*: I/O and waits at barriers of its three phases.

    *profile* is the emulated device that stands for the system.
    """

    system: str
    profile: str
    seconds: Mapping[tuple[int, int], float]
    columns: Mapping[tuple[int, int], Sequence[float]]
    scheduler_seconds: float | None = None  # the best kernel scheduler, instead of tokens


THROTTLING: Sequence[ThrottlingTable] = (
    ThrottlingTable(
        "Xeon, one disk",
        "xeon-eide",
        {(4, 4): 243, (1, 4): 235, (4, 1): 199, (1, 1): 189},
        {
            (4, 4): (12, 9, 83, 3, 77, 1),
            (1, 4): (12, 5, 83, 2, 77, 1),
            (4, 1): (12, 12, 53, 13, 45, 10),
            (1, 1): (18, 9, 48, 10, 42, 10),
        },
        213,
    ),
    ThrottlingTable(
        "p690, one disk",
        "p690-scsi",
        {(16, 16): 355, (1, 16): 358, (16, 1): 318, (1, 1): 311},
        {
            (16, 16): (56, 3, 157, 6, 144, 5),
            (1, 16): (33, 34, 152, 7, 144, 7),
            (16, 1): (59, 10, 60, 48, 52, 37),
            (1, 1): (31, 37, 59, 46, 51, 43),
        },
        339,
    ),
    ThrottlingTable(
        "cluster, RAID 5 of six disks",
        "beowulf-raid5",
        {
            (16, 16): 6353, (16, 1): 8690, (1, 1): 6973, (1, 2): 6406,
            (1, 4): 5741, (1, 8): 5627, (1, 16): 6131,
        },
        {
            (16, 16): (1330, 66, 2150, 72, 2210, 68),
            (16, 1): (1320, 67, 1815, 1596, 1826, 1606),
            (1, 1): (1559, 1071, 1148, 793, 1146, 794),
            (1, 2): (1543, 1000, 1746, 554, 1128, 568),
            (1, 4): (1583, 1004, 1073, 273, 1077, 265),
            (1, 8): (1590, 1035, 1255, 17, 1249, 17),
            (1, 16): (1781, 1155, 1374, 12, 1319, 28),
        },
    ),
)  # fmt: skip


@dataclass(frozen=True)
class PublishedReaders:
    """How much longer *tasks* take than with the *best* number of readers at once: a share, by readers.

    Of one reader a lower bound was published, of two an upper bound.
    """

    system: str
    profile: str
    tasks: int
    best: int
    slower: Mapping[int, float]


RAID_READERS = PublishedReaders(
    "p690, RAID 5 of six disks", "p690-raid5", 16, 4, {1: 0.13, 2: 0.02, 4: 0.0, 16: 0.40}
)

FURTHER_THROTTLING = (
    "p690 with 16 GB of memory: 79 s with 16/16, 105 s with 1/16, 83 s with 16/1, 106 s with 1/1.",
    "Xeon with computing: 1,102 s with 4/4, 978 s with 4/1, 1,246 s with 1/4, 934 s with 1/1.",
)
CHARACTERISATION_ERRATA = (
    "Chapter 4 found raw devices and XFS the same without RAID; the sweep of chapter 5 found XFS slower "
    "at 4 KiB.",
    "307 and 712 IOPS per watt of memory and flash do not follow from the other rows: 39,756 IOPS at 2.4 "
    "W are 16,565; and the two orders of magnitude of the text are a factor of 20 in the table.",
    "The steps of tuning fit a beginning of 45,500 random reads a second. From the 46,000 of the text the "
    "published rates are 1.9, 5.5, 12.2 and 97.7 times as many.",
    "15 and 100 % efficiency of 16 drives fit the 35,000 random reads a second that the drive's maker "
    "states (87,563 of 560,000 are 15.6 %); of the measured 39,756 they are 14 and 88 %.",
    "That no outlier was left after the first pass was dropped is arithmetic: of four values Chauvenet's "
    "criterion can reject none, as a deviation is at most 1.500 deviations of the sample, and the limit "
    "is 1.534.",
)
PREDICTION_ERRATA = (
    "Einstein: the share of reads that follows from the three errors is .085 with POSIX and .369 with "
    "MPI-IO; a cell is misprinted.",
    "The three headings of the table of errors all say read time.",
)
THROTTLING_ERRATA = (
    "Cluster: 457 to 467 s of each total are in no column, but -133 s of 1 writer and 2 readers: its 1746 "
    "must be about 1148.",
    "p690: the columns of 16/16 and 1/16 add up to more than their totals (371 and 377 for 355 and 358).",
    "Cluster: 74.5 GiB in 1,396 s are 57 MB/s, more than the peak of 45 MB/s: a cache helped. The text's "
    "1,900 s and 60, 69 and 20 % match no row.",
    "Xeon with computing: 1 writer and 4 readers are slower than 4 and 4 (1,246 s against 1,102), without "
    "computing faster (235 s against 243).",
    "One reader on the RAID costs 18 % in the introduction and over 13 % later; section 6.3.2 is headed "
    "RAID and has the numbers of the single disk; 8 readers gain 9.0 % over 16, not 8.",
)
