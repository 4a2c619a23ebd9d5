#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs the scenario of docs/scenario.md, and draws its picture: requests per second of the slowest
tenant beside a noisy neighbour, under the C library's mutex and under ours, which `poundlock tune`
tunes meanwhile."""

import json
import pathlib
import re
import subprocess
import tempfile
import time

from command_line import ROOT, Parser, positive
from picture import DEFAULT_COLOUR, NATIVE_COLOUR, panel

SLOWEST = re.compile(r"slowest tenant: ([0-9.]+)")
WINDOW = "60ms"


def arguments():
    parser = Parser(prog="scenario", description=__doc__)
    parser.add_argument(
        "--before", type=positive(int), default=8, help="seconds before tuning (%(default)s)"
    )
    parser.add_argument(
        "--tune", type=positive(int), default=20, help="seconds of tuning at most (%(default)s)"
    )
    parser.add_argument(
        "--after", type=positive(int), default=12, help="seconds after tuning (%(default)s)"
    )
    parser.add_argument(
        "--program",
        type=pathlib.Path,
        default=ROOT / "build/examples/example-neighbour",
        help="(%(default)s)",
    )
    parser.add_argument(
        "--output", type=pathlib.Path, default=ROOT / "docs/img/scenario.svg", help="(%(default)s)"
    )
    parser.add_poundlock()
    return parser.parse_args()


def points(text, seconds):
    """The figures of each second; the last line is the mean."""
    figures = [float(figure) for figure in SLOWEST.findall(text)][:-1]
    return list(enumerate(figures[:seconds], 1))


def native(options, seconds):
    command = [options.program, str(seconds + 1)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return points(done.stdout, seconds)


def tuned(options, seconds):
    """The same under the default lock, which is tuned meanwhile."""
    run = [options.poundlock, "run", "--control", "--stats", "--", options.program]
    program = subprocess.Popen([*run, str(seconds + 1)], stdout=subprocess.PIPE, text=True)
    time.sleep(options.before)
    tune = [options.poundlock, "tune", "-p", str(program.pid), "--for", f"{options.tune}s"]
    tune += ["--window", WINDOW, "--by", "slowest", "--keep"]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(tune, check=True, cwd=folder)
    text, _ = program.communicate()
    return points(text, seconds)


def main():
    options = arguments()
    options.poundlock = options.poundlock.resolve()
    seconds = options.before + options.tune + options.after
    curves = [
        ("shfl_ron", DEFAULT_COLOUR, tuned(options, seconds)),
        ("glibc", NATIVE_COLOUR, native(options, seconds)),
    ]
    shortest = min(len(figures) for _, _, figures in curves)
    curves = [(name, colour, figures[:shortest]) for name, colour, figures in curves]
    about = f"poundlock tune -p PID --by slowest --keep, from second {options.before}"
    described = panel("The slowest tenant beside a noisy neighbour", about, 560, curves)
    described |= {"unit": "requests per second", "axis": "seconds"}
    command = [options.poundlock, "draw", json.dumps({"panels": [described]})]
    drawn = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    options.output.write_bytes(drawn.stdout)
    print(options.output)


if __name__ == "__main__":
    main()
