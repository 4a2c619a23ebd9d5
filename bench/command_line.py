# SPDX-License-Identifier: MIT OR Apache-2.0
"""The command lines of the benchmarks: errors of one line, positive numbers, and the options that
several of them have."""

import argparse
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"{self.prog}: {message}\n")

    def add_seconds(self, default, kind=float):
        self.add_argument(
            "--seconds",
            type=positive(kind),
            default=default,
            help="of each measurement (%(default)s)",
        )

    def add_repeats(self, default, of):
        self.add_argument(
            "--repeats", type=positive(int), default=default, help=f"{of} (%(default)s)"
        )

    def add_poundlock(self):
        built = str(ROOT / "target/release/poundlock")
        self.add_argument("--poundlock", type=command, default=built, help="the command to measure")


def command(path):
    """The path of a command that exists."""
    if not pathlib.Path(path).is_file():
        raise argparse.ArgumentTypeError(f"no command at {path}: build it first")
    return pathlib.Path(path)


def positive(kind):
    def parse(text):
        value = kind(text)
        if value <= 0:
            raise ValueError
        return value

    parse.__name__ = f"positive {kind.__name__}"
    return parse
