# SPDX-License-Identifier: MIT OR Apache-2.0
"""The results of benchmarks: reports and plots in results/, raw data in build/results/.

Documents cite results/, so its figures must be reproducible: it is written only from a committed
revision on an idle machine, or with --force. Other outputs are not checked."""

import json
import os
import pathlib
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results"
RAW = ROOT / "build" / "results"

# Cores that other processes may keep busy, and for how many seconds that is observed.
IDLE = 0.25
OBSERVED = 2.0


class Unfit(Exception):
    """One line: why nothing may be written to results/ now."""


def add_options(parser, name=None):
    """Adds the report's path, by default @name in results/, if there is one."""
    parser.add_argument(
        "--output",
        metavar="PATH",
        type=pathlib.Path,
        default=name and RESULTS / name,
        help="the report's path without .md",
    )
    help = "write to results/ despite uncommitted changes or a busy machine"
    parser.add_argument("--force", action="store_true", help=help)


def check(output, force, tree=ROOT, busy=None):
    """Raises Unfit if @output is in results/ and a measurement now would not be reproducible.

    @busy returns how many cores other processes keep busy."""
    if force or not is_kept(output):
        return
    if changes(tree):
        raise Unfit("uncommitted changes: commit them, or give --force or another --output")
    cores = (busy or cores_busy_with_others)()
    if cores > IDLE:
        raise Unfit(
            f"other processes keep {cores:.1f} cores busy: wait for them, or give --force or "
            "another --output"
        )


def is_kept(output):
    return RESULTS in (ROOT / output).resolve().parents


def changes(tree):
    """Whether tracked files differ from the commit. A folder without git has no changes."""
    command = ["git", "-C", str(tree), "status", "--porcelain", "--untracked-files=no"]
    return bool(subprocess.run(command, capture_output=True, text=True).stdout.strip())


def raw(output, suffix=".json"):
    """The path of the raw data of @output: build/results/ for results/, else beside the report."""
    folder = RAW if is_kept(output) else (pathlib.Path.cwd() / output).parent
    folder.mkdir(parents=True, exist_ok=True)
    return folder / (pathlib.Path(output).name + suffix)


def keep(output, document, text):
    """Writes the report @text to @output.md and the raw @document to its place."""
    output = pathlib.Path(output)
    output.parent.mkdir(parents=True, exist_ok=True)
    report, data = output.with_name(output.name + ".md"), raw(output)
    report.write_text(text)
    data.write_text(json.dumps(document, indent=1) + "\n")
    return report, data


# ---- The machine ----


def cores_busy_with_others():
    before = time.monotonic(), machine_seconds() - own_seconds()
    time.sleep(OBSERVED)
    after = time.monotonic(), machine_seconds() - own_seconds()
    return max(0.0, (after[1] - before[1]) / (after[0] - before[0]))


def machine_seconds():
    """CPU time used by all processes, and by other guests of the hypervisor."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(
        int, pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
    )
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def own_seconds():
    return sum(os.times()[:4])
