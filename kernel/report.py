# SPDX-License-Identifier: MIT OR Apache-2.0
"""Prints and counts the results of guests, case by case."""

import contextlib
import re
import time

from cases import Result, is_refused
from parts import build_module

CONSOLE_LINES = 40  # of the console of a guest that did not end


class Count:
    """Counts of passed, failed and skipped cases, and the duration of each part."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.failures = []  # the lines of failed cases
        self.seconds = {}

    @contextlib.contextmanager
    def part(self, name):
        began = time.monotonic()
        yield
        self.seconds[name] = self.seconds.get(name, 0) + time.monotonic() - began

    def sum_up(self):
        print(
            "     seconds: "
            + ", ".join(f"{name} {seconds:.0f}" for name, seconds in self.seconds.items())
            + f"; in all {sum(self.seconds.values()):.0f}"
        )
        print(f"{self.passed} passed, {self.failed} failed")

    def case(self, name, wrong, more=""):
        self.passed += not wrong
        self.failed += bool(wrong)
        line = f"{name}{': ' if wrong or more else ''}{wrong or more}"
        print(f"{'FAIL' if wrong else 'ok  '} {line}", flush=True)
        if wrong:
            self.failures.append(line)

    def skip(self, what, why, cases):
        """Counts @cases of @what as skipped."""
        print(f"kernel: skipped {what}: {why}", flush=True)
        self.skipped += cases


def results_in(lines):
    matches = (re.match(r"@@ run (\d+) (.*)", line) for line in lines)
    return [Result(int(match.group(1)), match.group(2)) for match in matches if match]


def number_of_cases(guest):
    """The cases that judge_guest() counts."""
    refused = sum(value != guest.uses[name] for name, value in guest.sets.items())
    return 3 + len(guest.sets) + refused + len(guest.cases)


def judge_guest(guest, lines, wrong, count):
    """Counts each case, the guest's end and its log."""
    results = results_in(lines)
    booted = f"@@ boot {guest.cpus} {guest.nodes}" in lines
    count.case(
        f"{guest.name}: {guest.cpus} CPUs on {guest.nodes} nodes",
        "" if booted else "there are others",
    )
    for name, value in guest.sets.items():
        uses = guest.uses[name]
        count.case(
            f"{guest.name}: poundlock.{name}={value} is {uses}",
            "" if f"@@ uses {name} {uses}" in lines else "the kernel uses another one",
        )
        if value != uses:
            refused = [
                line for line in lines if f"poundlock.{name}={value}: {guest.refusal}" in line
            ]
            count.case(f"{guest.name}: the kernel says so", "" if refused else "it does not")
    for number, case in enumerate(guest.cases):
        result = results[number] if number < len(results) else None
        if (
            result
            and case.judge is not is_refused
            and not result.text.startswith(f"lock={case.lock} ")
        ):
            result = Result(result.status or 1, f"no result: {result.text}")
        complaint = case.judge(result) if result else "it was not run"
        text = result.text if result else ""
        count.case(f"{guest.name}: {case.run}", f"{complaint}; {text}" if complaint else "", text)
    complaints = [line.removeprefix("@@ log ") for line in lines if line.startswith("@@ log ")]
    count.case(f"{guest.name}: the kernel's log is silent", "; ".join(complaints[:5]))
    count.case(f"{guest.name}: the guest ends", wrong)
    if wrong:
        print("\n".join(f"    {line}" for line in lines[-CONSOLE_LINES:]), flush=True)


def checked_module(image, tree, count, name="poundlock_torture", part="."):
    """The module @name for the kernel of @image. A build without warnings is a case."""
    with count.part(f"{name} for {image.name}"):
        module, said = build_module(tree, name, part)
    count.case(f"{name} builds for {image.name} without a warning", "; ".join(said))
    return module
