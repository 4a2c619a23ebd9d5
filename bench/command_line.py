# SPDX-License-Identifier: MIT OR Apache-2.0
"""The command lines of the benchmarks: errors of one line, and positive numbers."""

import argparse


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"{self.prog}: {message}\n")


def positive(kind):
    def parse(text):
        value = kind(text)
        if value <= 0:
            raise ValueError
        return value

    parse.__name__ = f"positive {kind.__name__}"
    return parse
