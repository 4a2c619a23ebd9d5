#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Draws README.md's picture: throughput by number of threads, on a simulated machine of four
sockets and of a real program.

The left half is simulated by this command: the same revision draws the same curves. The right half
shows the medians of results/default.md, which `./dev bench programs` measures."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

from command_line import Parser, positive

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/programs"))
import run as programs  # noqa: E402

MACHINE = "e7-8895v3"
WORKLOAD = "cna-map"
THREADS = (2, 4, 8, 18, 36, 72, 144, 288)
# The curve's label, the lock's specification, the colour (red, green, blue).
# Locks in order of arrival perform best here when they spin.
CURVES = (
    ("shfl_ron (default)", "shfl_ron", (31, 111, 178)),
    ("cna", "cna,wait=spin", (46, 139, 87)),
    ("ttas", "ttas", (184, 134, 11)),
    ("mcs", "mcs,wait=spin", (139, 90, 155)),
    ("adaptive (as Linux's mutex)", "adaptive", (196, 78, 54)),
)
PROGRAM = "kccachetest-wicked"
NATIVE_COLOUR, DEFAULT_COLOUR = (196, 78, 54), (31, 111, 178)

UNIT = "million operations per second"


def arguments():
    parser = Parser(prog="picture", description=__doc__)
    parser.add_argument(
        "--seeds", type=positive(int), default=3, help="simulations of each point (%(default)s)"
    )
    parser.add_argument(
        "--output",
        type=pathlib.Path,
        default=ROOT / "docs/img/throughput.svg",
        help="(%(default)s)",
    )
    parser.add_poundlock()
    return parser.parse_args()


def simulate(options):
    """Curves of (name, colour, [(threads, million operations per second)])."""
    with tempfile.NamedTemporaryFile(suffix=".json") as figures:
        command = [options.poundlock, "sim", "sweep", "--machine", MACHINE, "--workload", WORKLOAD]
        command += [
            "--locks",
            ",".join(spec for _, spec, _ in CURVES),
            "--threads",
            ",".join(map(str, THREADS)),
        ]
        command += ["--measured", "5ms", "--seeds", str(options.seeds), "--json", figures.name]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        points = json.load(open(figures.name))["points"]
    found = {
        (point["lock"], point["threads"]): point["figures"]["per_second"]["median"] / 1e6
        for point in points
    }
    return [(name, colour, [(n, found[spec, n]) for n in THREADS]) for name, spec, colour in CURVES]


def measured():
    """The same of the program: native and under the default lock, as results/default.md has it."""
    table = (ROOT / "results/default.md").read_text()
    native, default = [], []
    for program in programs.programs_of(100):
        if not program.name.startswith(PROGRAM):
            continue
        threads = int(program.name.rsplit("-", 1)[1])
        operations = threads * int(program.command("")[-1])
        seconds = re.search(
            rf"^\| {program.name} +\| +([0-9.]+) s \| +([0-9.]+) s ", table, re.MULTILINE
        )
        native.append((threads, operations / float(seconds[1]) / 1e6))
        default.append((threads, operations / float(seconds[2]) / 1e6))
    return [("shfl_ron (default)", DEFAULT_COLOUR, default), ("glibc", NATIVE_COLOUR, native)]


def panel(title, about, width, curves):
    """The description of a panel, for `poundlock draw`."""
    described = [
        {"name": name, "colour": colour, "points": points} for name, colour, points in curves
    ]
    return {"title": title, "about": about, "unit": UNIT, "width": width, "curves": described}


def main():
    options = arguments()
    about = f"poundlock sim sweep -m {MACHINE} -w {WORKLOAD}"
    panels = [
        panel("Simulated: 4 sockets, 144 CPUs", about, 360, simulate(options)),
        panel(
            "Measured: Kyoto Cabinet on 2 CPUs",
            "kccachetest wicked, from results/default.md",
            180,
            measured(),
        ),
    ]
    command = [options.poundlock, "draw", json.dumps({"panels": panels})]
    drawn = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_bytes(drawn.stdout)
    print(options.output)


if __name__ == "__main__":
    main()
