#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tests of what bench/watch.py reads from the output of other tools."""

import unittest

import watch

# Printed by `perf lock contention -i FILE` of Debian's perf 6.1.192, to stderr.
CONTENTION = """\
 contended   total wait     max wait     avg wait         type   caller

         1      1.82 ms      1.82 ms      1.82 ms      rwsem:W   do_syscall_64+0x71
         9    119.53 us     15.48 us     13.28 us     spinlock   swake_up_one+0x35
         5     77.00 us     22.28 us     15.40 us     spinlock   update_process_times+0x8c
"""


class Contention(unittest.TestCase):
    def test_the_first_lock_is_named(self):
        words = watch.first_contended(CONTENTION)
        self.assertEqual(words, "locks of the kernel, first rwsem:W do_syscall_64+0x71")

    def test_an_empty_table_has_none(self):
        self.assertEqual(watch.first_contended(CONTENTION.splitlines()[0] + "\n\n"), "nothing")

    def test_what_is_no_table_is_a_failure(self):
        for text in ["", "incompatible file format\n"]:
            with self.assertRaises(watch.Failure):
                watch.first_contended(text)


# Of bpftrace 0.17.
OFF_CPU = r"""{"type": "attached_probes", "data": {"probes": 3}}
{"type": "map", "data": {"@began": 1000}}
{"type": "map", "data": {"@ended": 3000}}
{"type": "map", "data": {"@off": {"\n nap+1\n": 500, "\n wait+4\n": 1500, "\n wait+4\n": 2000}}}
"""


class OffCpu(unittest.TestCase):
    def test_all_sleep_counts_and_the_longest_is_named(self):
        self.assertEqual(watch.longest_off_cpu(OFF_CPU), (2.0, "sleep, most in wait"))

    def test_what_has_no_times_is_a_failure(self):
        for text in ["", OFF_CPU.split("\n")[0], "ERROR: no such probe\n"]:
            with self.assertRaises(watch.Failure):
                watch.longest_off_cpu(text)


if __name__ == "__main__":
    unittest.main()
