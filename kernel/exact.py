# SPDX-License-Identifier: MIT OR Apache-2.0
"""Reproducible counts: QEMU counts instructions instead of time, and every random seed is fixed.

QEMU 10 is required, since 7.2 does not start all CPUs in this mode. Debian 12 has QEMU 10 in its
backports: the needed packages are downloaded and unpacked in build/kernel/qemu, not installed, and
use the libraries of the installed QEMU. The other guests keep the installed QEMU.

guest/transfers.c, a QEMU plugin, counts the cache lines that move between CPUs inside the lock's
calls.

The expected counts are in guest/exact.json, for each combination of QEMU, kernel, the module's
compiler and busybox. --accept records them again, which is due after each change of a lock or of
the torture.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path

import fetched
from fetched import Failure

HERE = Path(__file__).resolve().parent
EXPECTED = HERE / "guest/exact.json"
PACKAGES = ["qemu-system-x86", "qemu-system-data", "seabios"]
FIRST = 10  # of QEMU
LIMIT = 300  # seconds, to build the plugin

# The compared keys of a run's result and of the plugin's line about the run.
COUNTS = ["acquisitions", "same_per_1000", "remote_per_1000", "most_passed", "local", "remote"]
# Of the kernel's own spin lock also what its holder did after it had taken the lock, and what its
# waiters did before they queued.
OWN_COUNTS = [
    *COUNTS,
    "taken_local",
    "taken_remote",
    "taken_instructions",
    "queued",
    "queued_instructions",
]


def output(*command):
    return fetched.output(f"QEMU {FIRST}", *command)


class Qemu:
    """The emulator, unpacked in @folder; unpacks it if necessary."""

    def __init__(self, folder):
        self.root = folder / "root"
        self.program = self.root / "usr/bin/qemu-system-x86_64"
        if not self.program.exists():
            self.fetch(folder)
        self.version = output(self.program, "--version").splitlines()[0]
        number = re.search(r"version (\d+)", self.version)
        if not number or int(number.group(1)) < FIRST:
            shutil.rmtree(folder)
            raise Failure(f"QEMU {FIRST} cannot be had: the backports have {self.version}")

    def fetch(self, folder):
        what = f"QEMU {FIRST}"
        line = fetched.on_mirror(what, f"{fetched.codename()}-backports")
        fetched.unpack(what, folder, line, PACKAGES)

    def command(self, command, plugin, each):
        """@command of the installed QEMU, changed to this one, in exact mode. @each: CPUs/node."""
        share = self.root / "usr/share"
        command = [
            str(self.program),
            *command[1:],
            "-L",
            str(share / "qemu"),
            "-L",
            str(share / "seabios"),
            "-icount",
            "shift=4,sleep=off",
            "-seed",
            "1",
            "-rtc",
            "base=2024-01-01,clock=vm",
            "-plugin",
            f"{plugin},each={each}",
        ]
        append = command.index("-append") + 1
        command[append] += " nokaslr norandmaps"
        return command


def build_plugin(target):
    subprocess.run(
        [
            "gcc",
            "-O2",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-fPIC",
            "-shared",
            "-fvisibility=hidden",
            "-o",
            target,
            HERE / "guest/transfers.c",
        ],
        check=True,
        timeout=LIMIT,
    )
    return target


def counts_of(names, results, lines):
    """The values @names, by the first words of each result. @lines: console and plugin output."""
    moved = [line for line in lines if line.startswith("transfers: ")]
    counted = {}
    for (run, text), line in zip(results, moved):
        numbers = dict(re.findall(r"(\w+)=(\d+)", text + " " + line))
        counted[run] = {name: int(numbers[name]) for name in names if name in numbers}
    return counted


def compared_moves(found, of_rival):
    """A complaint if the counts @found have more moved lines than those @of_rival, which did the
    same work; and both numbers.

    >>> stock = {"acquisitions": 8, "local": 3, "remote": 0}
    >>> compared_moves({"acquisitions": 8, "local": 1, "remote": 2}, stock)
    ('', '3, and 3')
    >>> compared_moves({"acquisitions": 8, "local": 2, "remote": 2}, stock)
    ('it moves more: 4, and 3', '4, and 3')
    >>> compared_moves({"acquisitions": 8, "local": 2, "remote": 2}, None)
    ('there is nothing to compare', '')
    """
    if not found or not of_rival or found["acquisitions"] != of_rival["acquisitions"]:
        return "there is nothing to compare", ""
    moved, others = [counts["local"] + counts["remote"] for counts in (found, of_rival)]
    text = f"{moved}, and {others}"
    return f"it moves more: {text}" if moved > others else "", text


class Record:
    """The expected counts of the guests under @key."""

    def __init__(self, key):
        self.key = key
        self.every = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}

    def of(self, guest):
        return self.every.get(self.key, {}).get(guest)

    def take(self, guest, counted):
        self.every.setdefault(self.key, {})[guest] = counted
        EXPECTED.write_text(json.dumps(self.every, indent=1, sort_keys=True) + "\n")
