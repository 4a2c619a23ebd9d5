#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""The cost of statistics for Kyoto Cabinet: CPU time with POUNDLOCK_STATS over CPU time without.

With --native, statistics of the C library's own locks, over runs without the preload library.
Runs are short and interleaved. For each workload it prints the median of the pairs' ratios and
their quartiles, and the same of two runs without statistics, which is the noise.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

LIBRARY = Path(__file__).resolve().parent.parent / "build/preload/libpoundlock-preload.so"
WORKLOADS = [
    "wicked -th 1 -it 1 200000",
    "wicked -th 8 -it 1 25000",
    "order -th 1 60000",
    "order -th 8 20000",
]


def cpu_seconds(workload, settings):
    """The CPU time of one run."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("POUNDLOCK_")}
    environment = {**kept, **settings}
    process = subprocess.Popen(
        ["kccachetest", *workload.split()], env=environment, stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"kccachetest {workload}: ended with {status}")
    return used.ru_utime + used.ru_stime


def row(workload, pairs, folder, native):
    preloaded = {"LD_PRELOAD": str(LIBRARY)}
    on = {**preloaded, "POUNDLOCK_STATS": folder}
    off = preloaded
    if native:
        on["POUNDLOCK_LOCK"] = "native"
        off = {}
    variants = {"again": off, "on": on, "off": off}
    seconds = {name: [] for name in variants}
    for pair in range(pairs):
        names = list(variants)
        for name in names[pair % 3 :] + names[: pair % 3]:
            seconds[name].append(cpu_seconds(workload, variants[name]))
            for file in Path(folder).iterdir():
                file.unlink()
    cells = [f"`{workload}`"]
    for name in ("on", "again"):
        ratios = [other / off for other, off in zip(seconds[name], seconds["off"])]
        low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
        cells += [f"{middle:.3f}", f"{low:.3f}-{high:.3f}"]
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=60, help="of each workload (default: 60)")
    parser.add_argument("--native", action="store_true", help="count the C library's own locks")
    options = parser.parse_args()
    if options.pairs < 2:
        sys.exit(f"--pairs {options.pairs}: quartiles are of 2 or more")
    if not LIBRARY.exists():
        sys.exit(f"{LIBRARY}: not built")
    print(
        "| kccachetest | on / off | quartiles | off / off | quartiles |\n|---|---:|---:|---:|---:|"
    )
    with tempfile.TemporaryDirectory(prefix="poundlock-", dir="/dev/shm") as folder:
        for workload in WORKLOADS:
            print(row(workload, options.pairs, folder, options.native), flush=True)


if __name__ == "__main__":
    main()
