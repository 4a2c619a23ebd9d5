#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tests of the benchmark's conclusions and of its driver. Usage: test_report.py LOCKBENCH."""

import argparse
import json
import subprocess
import sys
import unittest

import measure
import questions
from measure import Case, Contestant, interleave
from questions import Comparison, Goal, Verdicts

CASE = Case("case", ())
lockbench = ""


def drive(*arguments):
    return subprocess.run([lockbench, *arguments], capture_output=True, text=True)


class Conclusions(unittest.TestCase):
    def test_every_repeat_has_every_contestant_in_another_order(self):
        order = []
        found = [Contestant(name, name) for name in "abc"]
        results = interleave(
            "", [CASE], found, 2, lambda who, case: order.append(who.name) or {"n": len(order)}
        )
        self.assertEqual("".join(order), "abcbca")
        self.assertEqual(results["case", "a"], [{"n": 1}, {"n": 6}])

    def test_ratios_are_taken_within_a_repeat(self):
        results = {
            ("case", "glibc"): [{"x": 1}, {"x": 10}],
            ("case", "ours"): [{"x": 2}, {"x": 20}],
        }
        self.assertEqual(Comparison(results, CASE, "x").ratios("ours", "glibc"), [2, 2])

    def test_the_best_rival_is_best_over_all_repeats(self):
        results = {
            ("case", "lucky"): [{"x": 99}, {"x": 1}, {"x": 1}],
            ("case", "good"): [{"x": 5}, {"x": 5}, {"x": 5}],
        }
        self.assertEqual(Comparison(results, CASE, "x").best(["lucky", "good"]), "good")

    def test_the_interval_of_the_median_decides_a_goal(self):
        verdicts = Verdicts({"ours": Goal(1.0, at_least=True)})
        for ratios, verdict in (
            ([0.9] * 6, "MISSED"),
            ([0.999] * 5 + [2.0], "met"),
            ([0.9] + [1.1] * 8, "met"),
            ([0.9] * 2 + [1.1] * 7, "undecided"),
            ([0.9] * 5, "undecided"),
        ):
            self.assertEqual(verdicts.judge("ours", "here", ratios), f">= 1.00 {verdict}", ratios)
        self.assertEqual((len(verdicts.missed), len(verdicts.undecided), verdicts.met), (1, 2, 2))
        low = Verdicts({"ours": Goal(1.3, at_least=False)})
        self.assertEqual(low.judge("ours", "here", [1.304] * 6), "<= 1.30 met")
        self.assertEqual(low.judge("ours", "here", [1.31] * 6), "<= 1.30 MISSED")

    def test_a_lock_that_never_ended_misses_its_goal(self):
        results = {("case", "ours"): [{"x": 1}, {"did_not_end_within_seconds": 70}]}
        verdicts = Verdicts({"ours": Goal(1.3, at_least=False)})
        verdicts.judge("ours", "here", Comparison(results, CASE, "x").ratios("ours", "glibc"))
        self.assertIn("did not end", verdicts.missed[0])

    def test_every_lock_of_the_list_is_measured_linked_and_preloaded(self):
        names = {who.name for who in questions.contestants()}
        self.assertIn("shfl_mutex", questions.lock_names())
        for lock in questions.lock_names():
            self.assertLessEqual({f"linked {lock}", f"preloaded {lock}"}, names)


class Driver(unittest.TestCase):
    def test_one_thread_takes_all_its_turns_alone(self):
        answer = json.loads(drive("--lock", "glibc", "--threads", "1", "--seconds", "0.05").stdout)
        self.assertEqual((answer["threads"], answer["jain"]), (1, 1))
        self.assertGreater(answer["operations"], 0)

    def test_every_item_of_the_queue_arrives(self):
        for lock in ("glibc", "nsync", "parking_lot", "pound_mutex"):
            crowd = ["--producers", "3", "--consumers", "2"]
            for threads in ([], crowd, [*crowd, "--pin"]):
                done = drive(
                    *["--lock", lock, "--measure", "queue", "--operations", "1000"],
                    *["--capacity", "2", *threads],
                )
                self.assertEqual((done.returncode, done.stderr), (0, ""), (lock, threads))
                answer = json.loads(done.stdout)
                self.assertEqual((answer["lock"], answer["items"]), (lock, 1000))
                self.assertGreaterEqual(answer["sleeps_per_item"], 0)
                self.assertGreaterEqual(answer["cpu_us_per_item"], 0)

    def test_the_question_of_the_queue_has_a_row_for_each_contestant(self):
        driver = measure.Driver(lockbench, "", 600)
        options = argparse.Namespace(seconds=0.001, repeats=1)
        answer = questions.queue(driver, options)
        self.assertEqual(len(answer.tables), len(questions.QUEUES))
        for table in answer.tables:
            names = [row[0] for row in table.rows]
            self.assertEqual(names, ["glibc", "nsync", "parking_lot", "pound_mutex"])
        judged = answer.met + len(answer.missed) + len(answer.undecided)
        self.assertEqual(judged, len(questions.QUEUES))

    def test_memory_is_at_least_the_locks(self):
        answer = json.loads(
            drive("--lock", "glibc", "--measure", "memory", "--count", "100000").stdout
        )
        self.assertGreaterEqual(answer["resident_bytes"], 100000 * answer["bytes_per_lock"])

    def test_bad_arguments_are_one_line_and_status_2(self):
        for bad in (
            ["--lock", "nosuch"],
            ["--lock", "glibc", "--threads", "0"],
            ["--lock", "glibc", "--cs", "soon"],
            ["--lock", "pound:nosuch"],
            ["--lock", "glibc:x"],
            ["--bogus"],
            ["--threads"],
            [],
            ["--lock", "glibc", "--measure", "luck"],
            ["--lock", "none", "--measure", "queue"],
            ["--lock", "glibc", "--measure", "queue", "--producers", "2"],
        ):
            done = drive(*bad)
            self.assertEqual(
                (done.returncode, done.stderr.count("\n"), done.stdout), (2, 1, ""), bad
            )


if __name__ == "__main__":
    lockbench = sys.argv.pop()
    unittest.main()
