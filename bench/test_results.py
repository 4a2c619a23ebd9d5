#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tests of when results are kept, and where: bench/results.py."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import results

KEPT = results.RESULTS / "bench"


class Repository(unittest.TestCase):
    """A repository with one commit."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.tree = pathlib.Path(scratch.name)
        self.git("init", "-q")
        (self.tree / "file").write_text("committed\n")
        self.git("add", "file")
        self.git("-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "-m", "one")

    def git(self, *words):
        subprocess.run(["git", "-C", self.tree, *words], check=True)

    def check(self, output=KEPT, force=False, busy=0.0):
        results.check(output, force, self.tree, lambda: busy)

    def refused(self, **arguments):
        with self.assertRaises(results.Unfit) as caught:
            self.check(**arguments)
        self.assertNotIn("\n", str(caught.exception))
        return str(caught.exception)


class Refusal(Repository):
    def test_a_committed_tree_on_an_idle_machine_is_accepted(self):
        (self.tree / "untracked").write_text("a log\n")
        self.check()

    def test_uncommitted_changes_are_refused(self):
        (self.tree / "file").write_text("changed\n")
        self.assertIn("uncommitted changes", self.refused())

    def test_staged_changes_are_refused(self):
        (self.tree / "file").write_text("changed\n")
        self.git("add", "file")
        self.assertIn("uncommitted changes", self.refused())

    def test_a_busy_machine_is_refused(self):
        self.assertIn("1.5 cores busy", self.refused(busy=1.5))

    def test_force_overrides_both(self):
        (self.tree / "file").write_text("changed\n")
        self.check(force=True, busy=2.0)

    def test_other_outputs_are_not_checked(self):
        (self.tree / "file").write_text("changed\n")
        self.check(output=self.tree / "out", busy=2.0)

    def test_a_relative_output_is_one_of_the_repository(self):
        self.refused(output=pathlib.Path("results/default"), busy=2.0)


class Commands(unittest.TestCase):
    def test_every_command_that_keeps_results_can_be_forced(self):
        for command in (
            "bench/run.py",
            "bench/papers.py",
            "bench/simulator.py",
            "tests/programs/run.py",
        ):
            shown = subprocess.run(
                [results.ROOT / command, "--help"], capture_output=True, text=True
            )
            self.assertIn("--force", shown.stdout, command)


class Places(unittest.TestCase):
    def test_raw_data_of_kept_results_are_build_products(self):
        self.assertEqual(results.raw(KEPT), results.ROOT / "build" / "results" / "bench.json")

    def test_raw_data_of_other_outputs_lie_beside_the_report(self):
        with tempfile.TemporaryDirectory() as scratch:
            report, data = results.keep(pathlib.Path(scratch) / "one", {"a": 1}, "text\n")
            self.assertEqual((report.name, data.name), ("one.md", "one.json"))
            self.assertEqual(report.parent, data.parent)


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
