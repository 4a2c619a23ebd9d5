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


if __name__ == "__main__":
    unittest.main()
