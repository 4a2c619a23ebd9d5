# SPDX-License-Identifier: MIT OR Apache-2.0
"""The command lines of the benchmarks: errors of one line, positive numbers, and the option for the
command poundlock."""

import argparse
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"{self.prog}: {message}\n")

    def add_poundlock(self):
        built = ROOT / "target/release/poundlock"
        self.add_argument("--poundlock", type=pathlib.Path, default=built)


def positive(kind):
    def parse(text):
        value = kind(text)
        if value <= 0:
            raise ValueError
        return value

    parse.__name__ = f"positive {kind.__name__}"
    return parse
