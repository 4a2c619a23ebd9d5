# SPDX-License-Identifier: MIT OR Apache-2.0
"""kernel.md's table of the cache lines that move under each lock, from kernel/guest/exact.json."""

import json
import pathlib

RECORDED = pathlib.Path(__file__).resolve().parent.parent / "kernel/guest/exact.json"
HEADER = """\
| lock | moved, per acquisition | of these from the other node | of 1,000 acquisitions on the other node |
|---|---|---|---|
"""
LOCKS = {
    "ticket": "`ticket`",
    "mcs": "`mcs`",
    "clh": "`clh`",
    "native": "the kernel's own (`native`), stock",
    "cna": "`cna`",
    "shfl_spin": "`shfl_spin`",
    "ron": "`ron`",
}


def guests():
    """By guest and lock, the recorded counts."""
    (recorded,) = json.loads(RECORDED.read_text()).values()
    return {
        guest: {case.split()[0]: counts for case, counts in cases.items()}
        for guest, cases in recorded.items()
    }


def remote(counts):
    return f"{counts['remote'] / counts['acquisitions']:.2f}"


def row(lock, counts):
    moved = (counts["local"] + counts["remote"]) / counts["acquisitions"]
    return f"| {LOCKS[lock]} | {moved:.1f} | {remote(counts)} | {counts['remote_per_1000']} |\n"


def table():
    recorded = guests()
    rows = "".join(row(lock, recorded["exact-16"][lock]) for lock in LOCKS)
    few, many = (
        [remote(recorded[guest][lock]) for lock in ("cna", "shfl_spin", "mcs")]
        for guest in ("exact-8", "exact-32")
    )
    return (
        f"{HEADER}{rows}\n"
        f"With 8 CPUs on 2 nodes {few[0]} lines come from the other node under CNA, "
        f"{few[1]} under ShflLock and\n{few[2]} under MCS; with 32 on 4 nodes {many[0]}, {many[1]} "
        f"and {many[2]}.\n"
    )
