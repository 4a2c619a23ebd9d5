# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the benchmarks' commands have in common: a mistake is one line, and numbers are above 0."""

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
