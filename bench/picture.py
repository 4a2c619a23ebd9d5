#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Draws README.md's picture: throughput by number of threads, on a simulated machine of four
sockets and of a real program.

The left half is simulated by this command: the same revision draws the same curves. The right half
shows the medians of results/default.md, which `./dev bench programs` measures."""

import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile
from xml.sax.saxutils import escape

from command_line import Parser, positive

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/programs"))
import run as programs  # noqa: E402

MACHINE = "e7-8895v3"
WORKLOAD = "cna-map"
THREADS = (2, 4, 8, 18, 36, 72, 144, 288)
# The curve's label, the lock's specification, the colour. Locks in order of arrival perform best
# here when they spin.
CURVES = (
    ("shfl_mutex (default)", "shfl_mutex", "#1f6fb2"),
    ("cna", "cna,wait=spin", "#2e8b57"),
    ("ttas", "ttas", "#b8860b"),
    ("mcs", "mcs,wait=spin", "#8b5a9b"),
    ("adaptive (as Linux's mutex)", "adaptive", "#c44e36"),
)
PROGRAM = "kccachetest-wicked"
NATIVE_COLOUR, DEFAULT_COLOUR = "#c44e36", "#1f6fb2"

WIDTH, HEIGHT = 980, 400
PANEL_TOP, PANEL_BOTTOM = 84, 340
INK, FAINT, GRID = "#222831", "#78808a", "#e4e7eb"


def arguments():
    parser = Parser(prog="picture", description=__doc__)
    parser.add_argument("--seeds", type=positive(int), default=3, help="simulations of each point (%(default)s)")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "docs/img/throughput.svg", help="(%(default)s)")
    parser.add_argument("--poundlock", type=pathlib.Path, default=ROOT / "target/release/poundlock")
    return parser.parse_args()


def simulate(options):
    """Curves of (name, colour, [(threads, million operations per second)])."""
    with tempfile.NamedTemporaryFile(suffix=".json") as figures:
        command = [options.poundlock, "sim", "sweep", "--machine", MACHINE, "--workload", WORKLOAD]
        command += ["--locks", ",".join(spec for _, spec, _ in CURVES), "--threads", ",".join(map(str, THREADS))]
        command += ["--seeds", str(options.seeds), "--json", figures.name]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        points = json.load(open(figures.name))["points"]
    found = {(point["lock"], point["threads"]): point["figures"]["per_second"]["median"] / 1e6 for point in points}
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
        seconds = re.search(rf"^\| {program.name} +\| +([0-9.]+) s \| +([0-9.]+) s ", table, re.MULTILINE)
        native.append((threads, operations / float(seconds[1]) / 1e6))
        default.append((threads, operations / float(seconds[2]) / 1e6))
    return [("shfl_mutex (default)", DEFAULT_COLOUR, default), ("glibc", NATIVE_COLOUR, native)]


def text(x, y, size, content, colour=INK, anchor="start"):
    place = f'x="{x:.0f}" y="{y:.0f}" font-size="{size}" fill="{colour}" text-anchor="{anchor}"'
    return f"<text {place}>{escape(content)}</text>"


def line(x1, y1, x2, y2, colour):
    return f'<line x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}" stroke="{colour}"/>'


def apart(heights, least):
    """The same heights in their order, moved down until they are at least so far apart.

    >>> apart([10, 12, 40], 14)
    [10, 24, 40]
    """
    moved = []
    for height in heights:
        moved.append(max(height, moved[-1] + least) if moved else height)
    return moved


def panel(left, right, title, about, curves):
    """A chart between the two abscissas; each curve is named right of its last point."""
    threads = [n for n, _ in curves[0][2]]
    end = math.ceil(max(rate for _, _, points in curves for _, rate in points))

    def x(n):
        return left + (right - left) * math.log2(n / threads[0]) / math.log2(threads[-1] / threads[0])

    def y(rate):
        return PANEL_BOTTOM - (PANEL_BOTTOM - PANEL_TOP) * rate / end

    parts = [text(left, 28, 17, title), text(left, 47, 12, about, FAINT)]
    parts.append(text(left, 70, 12, "million operations per second", FAINT))
    for rate in range(end + 1):
        parts += [line(left, y(rate), right, y(rate), GRID), text(left - 8, y(rate) + 4, 12, str(rate), FAINT, "end")]
    parts += [text(x(n), PANEL_BOTTOM + 20, 12, str(n), FAINT, "middle") for n in threads]
    parts.append(text((left + right) / 2, PANEL_BOTTOM + 42, 13, "threads", INK, "middle"))
    ordered = sorted(curves, key=lambda curve: -curve[2][-1][1])
    names = apart([y(points[-1][1]) + 4 for _, _, points in ordered], 15)
    for (name, colour, points), height in zip(ordered, names):
        shown = [(x(n), y(rate)) for n, rate in points]
        path = " ".join(f"{across:.1f},{up:.1f}" for across, up in shown)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        parts += [f'<circle cx="{across:.1f}" cy="{up:.1f}" r="3.5" fill="{colour}"/>' for across, up in shown]
        parts.append(text(right + 10, height, 13, name, colour))
    return parts


def main():
    options = arguments()
    parts = panel(40, 400, "Simulated: 4 sockets, 144 CPUs", f"poundlock sim sweep -m {MACHINE} -w {WORKLOAD}", simulate(options))
    parts += panel(650, 830, "Measured: Kyoto Cabinet on 2 CPUs", "kccachetest wicked, from results/default.md", measured())
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">\n'
        '<title>Throughput against threads, made by ./dev picture</title>\n'
        '<rect width="100%" height="100%" fill="white"/>\n'
        + "\n".join(parts) + "\n</svg>\n")
    print(options.output)


if __name__ == "__main__":
    main()
