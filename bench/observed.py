#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The cost of statistics for Kyoto Cabinet: CPU time of kccachetest with POUNDLOCK_STATS over that
without, of the default locks (over runs with the same locks) and of the C library's own (over runs
without the preload library). Runs are interleaved, and long enough that their start does not count.
See docs/statistics.md."""

import dataclasses
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import results
from command_line import Parser, positive
from questions import ROOT, Goal, Table, Verdicts, spread
from results import machine_seconds, own_seconds
from run import conclusion, keep, machine, markdown, preamble

SCHEMA = 1
LIBRARY = ROOT / "build/preload/libpoundlock-preload.so"
GOAL = Goal(1.03, at_least=False)
WORKLOADS = (
    "wicked -th 1 -it 1 1000000",
    "wicked -th 8 -it 1 125000",
    "order -th 1 600000",
    "order -th 4 150000",
    "order -th 8 100000",
)
PRELOADED = {"LD_PRELOAD": str(LIBRARY)}


@dataclasses.dataclass(frozen=True)
class Locks:
    """Locks whose statistics are measured: the environment without and with them."""

    title: str
    off: dict
    on: dict


LOCKS = {
    "default": Locks("the default locks", PRELOADED, PRELOADED),
    "native": Locks("the C library's locks", {}, PRELOADED | {"POUNDLOCK_LOCK": "native"}),
}


class Failed(Exception):
    """One line for the user."""


def arguments():
    parser = Parser(prog="observed", description=__doc__)
    parser.add_argument("locks", nargs="*", metavar="LOCKS", help="default, native; both if none")
    parser.add_argument(
        "--pairs",
        type=positive(int),
        default=24,
        help="of each workload; six or more decide a goal (%(default)s)",
    )
    results.add_options(parser, "observed")
    options = parser.parse_args()
    for name in options.locks:
        if name not in LOCKS:
            parser.error(f"there are no locks '{name}': {', '.join(LOCKS)}")
    if not LIBRARY.exists():
        parser.error(f"{LIBRARY}: not built")
    options.locks = options.locks or list(LOCKS)
    return options


def cpu_seconds(workload, settings):
    """The CPU time of one run. All runs draw the same random numbers."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("POUNDLOCK_")}
    process = subprocess.Popen(
        ["kccachetest", *workload.split()],
        env={**kept, "KCRNDSEED": "1", **settings},
        stdout=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise Failed(f"kccachetest {workload}: ended with {status}")
    return used.ru_utime + used.ru_stime


def measure(workload, locks, pairs, folder):
    """Seconds of each run: with statistics, without, and without again."""
    variants = {
        "again": locks.off,
        "on": locks.on | {"POUNDLOCK_STATS": str(folder)},
        "off": locks.off,
    }
    seconds = {name: [] for name in variants}
    for pair in range(pairs):
        names = list(variants)
        for name in names[pair % 3 :] + names[: pair % 3]:
            seconds[name].append(cpu_seconds(workload, variants[name]))
            for file in folder.iterdir():
                file.unlink()
    return seconds


def ratios(seconds, name):
    """Of the runs @name to the runs without statistics."""
    return [other / off for other, off in zip(seconds[name], seconds["off"])]


def table(locks, cases, verdicts):
    """A row for each workload of @cases, judged."""
    found = Table(locks.title, ["kccachetest", "on / off", "off / off", "goal"])
    for workload, seconds in cases.items():
        on, again = ratios(seconds, "on"), ratios(seconds, "again")
        verdict = verdicts.judge(locks.title, workload, on)
        found.rows.append([f"`{workload}`", spread(on), spread(again), verdict])
    return found


def report(facts, measured):
    """The tables of @measured, the seconds by locks and workload, and what they decide."""
    verdicts = Verdicts({locks.title: GOAL for locks in LOCKS.values()})
    tables = [table(LOCKS[name], cases, verdicts) for name, cases in measured.items()]
    return "\n".join([preamble(facts), *map(markdown, tables), *conclusion(verdicts)]) + "\n"


def main():
    options = arguments()
    results.check(options.output, options.force)
    before = time.monotonic(), machine_seconds() - own_seconds()
    measured = {name: {} for name in options.locks}
    with tempfile.TemporaryDirectory(prefix="poundlock-", dir="/dev/shm") as folder:
        for name in options.locks:
            for workload in WORKLOADS:
                measured[name][workload] = measure(
                    workload, LOCKS[name], options.pairs, pathlib.Path(folder)
                )
    after = time.monotonic(), machine_seconds() - own_seconds()
    busy = max(0.0, (after[1] - before[1]) / (after[0] - before[0]))
    facts = machine() | {
        "cores_that_others_kept_busy": round(busy, 2),
        "command": f"./dev bench stat {' '.join(options.locks)} --pairs {options.pairs}",
    }
    text = report(facts, measured)
    print(text)
    keep(options.output, {"schema": SCHEMA, "conditions": facts, "seconds": measured}, text)


if __name__ == "__main__":
    try:
        main()
    except (Failed, results.Unfit) as error:
        sys.exit(f"observed: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
