# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs the driver: one process per measurement, contestants interleaved in rotating order."""

import collections
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import time

from results import machine_seconds, own_seconds


class BenchError(Exception):
    """One line for the user."""


@dataclasses.dataclass(frozen=True)
class Contestant:
    """The name of a table's row, the driver's lock, and the environment of the process."""

    name: str
    lock: str
    preload: str = ""  # the lock of the preload library


@dataclasses.dataclass(frozen=True)
class Case:
    """A heading and the driver's arguments for it."""

    title: str
    arguments: tuple


class Driver:
    def __init__(self, path, preload, slack):
        self.path = pathlib.Path(path)
        self.preload = pathlib.Path(preload)
        self.slack = slack
        if not self.path.is_file():
            raise BenchError(f"no driver at {self.path}: build it first (POUNDLOCK_BENCH)")

    def ask(self, *arguments):
        """The driver's answer to a query."""
        return run([str(self.path), *arguments], {}, self.slack)

    def measure(self, contestant, arguments):
        """One measurement, as of measure()."""
        command = [str(self.path), "--lock", contestant.lock, *arguments]
        return measure(command, self._environment(contestant), self.slack)

    def instructions(self, contestant, arguments):
        """Instructions of the driver's whole run, counted by callgrind."""
        command = [str(self.path), "--lock", contestant.lock, *arguments]
        return instructions(command, self._environment(contestant))

    def check(self, contestants):
        """Checks that the preload library is active, so that no native lock is measured."""
        for contestant in contestants:
            if not contestant.preload:
                continue
            if not self.preload.is_file():
                raise BenchError(f"no preload library at {self.preload}: build it first")
            environment = os.environ | self._environment(contestant) | {"POUNDLOCK_VERBOSE": "1"}
            said = subprocess.run(
                [self.path, "--list"], env=environment, capture_output=True, text=True
            ).stderr
            if f"lock={contestant.preload} " not in said:
                raise BenchError(
                    f"{contestant.name}: the preload library did not take over: '{last_line(said)}'"
                )

    def _environment(self, contestant):
        if not contestant.preload:
            return {}
        return {"LD_PRELOAD": str(self.preload), "POUNDLOCK_LOCK": contestant.preload}


def run(command, environment, slack):
    """The JSON that @command prints. A time-out is a result; a failure is an error."""
    try:
        done = subprocess.run(
            command,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            timeout=slack,
        )
    except subprocess.TimeoutExpired:
        return {"did_not_end_within_seconds": slack}
    if done.returncode != 0 or done.stderr:
        raise BenchError(
            f"{' '.join(command[1:])}: {last_line(done.stderr) or f'status {done.returncode}'}"
        )
    return json.loads(done.stdout)


def instructions(command, environment):
    """Instructions of the whole run of @command, counted by callgrind."""
    tool = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command]
    try:
        done = subprocess.run(tool, env=os.environ | environment, capture_output=True, text=True)
    except FileNotFoundError:
        raise BenchError("valgrind is not installed: it counts instructions") from None
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not found:
        raise BenchError(f"{' '.join(command)} under valgrind: {last_line(done.stderr)}")
    return int(found[1])


def measure(command, environment, slack):
    """One run of @command, with the number of cores that other processes kept busy."""
    before = time.monotonic(), machine_seconds() - own_seconds()
    result = run(command, environment, slack)
    after = time.monotonic(), machine_seconds() - own_seconds()
    disturbed = (after[1] - before[1]) / (after[0] - before[0])
    return result | {"cores_busy_with_others": round(max(0.0, disturbed), 2)}


def last_line(text):
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""


class Progress:
    """One line of progress on a terminal; nothing elsewhere."""

    def __init__(self, title, total):
        self.title, self.total, self.done = title, total, 0
        self.start = time.monotonic()
        self.shown = sys.stderr.isatty()

    def step(self, what):
        if self.shown:
            left = (
                (time.monotonic() - self.start) / self.done * (self.total - self.done)
                if self.done
                else 0
            )
            text = f"{self.title} {self.done}/{self.total}, {left:.0f} s left: {what}"
            print(f"\r\033[K{text[:110]}", end="", file=sys.stderr, flush=True)
        self.done += 1

    def end(self):
        if self.shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def interleave(title, cases, contestants, repeats, measure):
    """Measures all contestants in all cases.

    Returns {(case title, contestant name): [the result of each repeat]}."""
    results = collections.defaultdict(list)
    progress = Progress(title, len(cases) * len(contestants) * repeats)
    for repeat in range(repeats):
        for case in cases:
            for i in range(len(contestants)):
                contestant = contestants[(i + repeat) % len(contestants)]
                progress.step(f"{contestant.name}, {case.title}")
                results[case.title, contestant.name].append(measure(contestant, case))
    progress.end()
    return dict(results)
