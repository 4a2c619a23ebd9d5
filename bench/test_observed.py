#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tests of how bench/observed.py judges what statistics cost."""

import unittest

import observed

FACTS = {"command": "./dev bench stat"}
# Seconds without statistics: the ratios of two runs of a pair do not depend on the pair.
OFF = [1.0, 3.0, 2.0, 5.0, 4.0, 6.0]


def seconds(on, again=1.0):
    """Of six pairs of runs, by the ratios of the runs with statistics, and of those without."""
    return {
        "on": [ratio * off for ratio, off in zip(on, OFF)],
        "again": [again * off for off in OFF[: len(on)]],
        "off": OFF[: len(on)],
    }


def row(measured, workload="order"):
    """The cells of the row of @workload in the report of @measured."""
    found = observed.report(FACTS, {"native": {workload: measured}})
    line = next(line for line in found.splitlines() if line.startswith(f"| `{workload}`"))
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


class Goals(unittest.TestCase):
    def test_a_goal_is_judged_by_the_interval_of_the_median(self):
        for on, cells in (
            ([1.03] * 6, ["1.03 (1.03-1.03)", "<= 1.03 met"]),
            ([1.04] * 6, ["1.04 (1.04-1.04)", "<= 1.03 MISSED"]),
            ([1.00] * 5 + [1.04], ["1.00 (1.00-1.04)", "<= 1.03 undecided"]),
            ([1.02] + [1.06] * 5, ["1.06 (1.02-1.06)", "<= 1.03 undecided"]),
        ):
            median, _, goal = row(seconds(on))
            self.assertEqual([median, goal], cells)

    def test_few_pairs_decide_nothing(self):
        median, _, goal = row(seconds([1.0] * 5))
        self.assertEqual((median, goal), ("1.00 (too few repeats)", "<= 1.03 undecided"))

    def test_runs_without_statistics_are_compared_but_not_judged(self):
        self.assertEqual(
            row(seconds([1.0] * 6, again=2.0)),
            ["1.00 (1.00-1.00)", "2.00 (2.00-2.00)", "<= 1.03 met"],
        )

    def test_the_report_counts_the_goals_of_all_locks(self):
        measured = {
            "default": {"order": seconds([1.5] * 6), "wicked": seconds([1.0] * 6)},
            "native": {"order": seconds([1.0] * 5 + [2.0])},
        }
        found = observed.report(FACTS, measured)
        self.assertIn("Goals met: 1; missed: 1; undecided: 1.", found)
        self.assertIn("- MISSED the default locks, order: goal <= 1.03: 1.50", found)
        self.assertIn("- undecided: the C library's locks, order: goal <= 1.03: 1.00", found)


if __name__ == "__main__":
    unittest.main()
