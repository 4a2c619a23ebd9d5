#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tests that descendants are found while threads and processes start and end."""

import os
import subprocess
import sys
import unittest

from processes import descendants

ROUNDS = 100

# In each round the youngest of many threads starts a shell, while the others end. The shell prints
# its process number, and ends at the next line of input. The program ends with its input.
RESTLESS = """
import subprocess, threading, time

ended = []

def start():
    ended.append(subprocess.run(["sh", "-c", "echo $$; read line"]).returncode)

while not any(ended):
    threads = [threading.Thread(target=time.sleep, args=(i / 20000,)) for i in range(100)]
    threads.append(threading.Thread(target=start))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


class Descendants(unittest.TestCase):
    def test_one_that_lives_is_found_while_others_end(self):
        command = [sys.executable, "-c", RESTLESS]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as restless:
            for _ in range(ROUNDS):
                shell = int(restless.stdout.readline())
                self.assertIn(shell, descendants(os.getpid()))
                self.assertIn(shell, descendants(restless.pid))
                restless.stdin.write("\n")
                restless.stdin.flush()

    def test_the_process_itself_is_none(self):
        self.assertNotIn(os.getpid(), descendants(os.getpid()))


if __name__ == "__main__":
    unittest.main()
