#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Measures the locks and prints the tables of each question. See docs/benchmarks.md."""

import datetime
import os
import pathlib
import platform
import shlex
import statistics
import subprocess
import sys
import tomllib

import results
from command_line import Parser
from measure import BenchError, Driver
from questions import QUESTIONS, ROOT

SCHEMA = 1


def arguments():
    parser = Parser(prog="bench", description=__doc__)
    parser.add_argument(
        "questions", nargs="*", metavar="QUESTION", help=f"of {', '.join(QUESTIONS)}; all if none"
    )
    parser.add_seconds(1.0)
    parser.add_repeats(7, "of every measurement; six or more decide a goal")
    parser.add_argument(
        "--locks", type=lambda text: text.split(","), help="whose names contain one of these"
    )
    parser.add_argument(
        "--build", type=pathlib.Path, default=ROOT / "build", help="the build's directory"
    )
    results.add_options(parser)
    options = parser.parse_args()
    options.fail = parser.error
    for question in options.questions:
        if question not in QUESTIONS:
            parser.error(f"there is no question '{question}': {', '.join(QUESTIONS)}")
    options.questions = options.questions or list(QUESTIONS)
    return options


def output_path(options):
    if options.output:
        return options.output
    whole = options.questions == list(QUESTIONS)
    return results.RESULTS / ("bench" if whole else "-".join(["bench", *options.questions]))


def keep(path, document, text):
    """Writes the report @text and the raw @document, and prints where."""
    report, data = results.keep(path, document, text)
    print(f"kept in {os.path.relpath(report)}; raw data in {os.path.relpath(data)}")


def one_line(command):
    """The output of @command, or None if it fails."""
    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=True, cwd=ROOT
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def cpu_model():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def locked_versions(lock_file, name):
    """The versions of the crate @name in @lock_file."""
    packages = tomllib.loads((ROOT / lock_file).read_text())["package"]
    return [package["version"] for package in packages if package["name"] == name]


def revision():
    commit = one_line(["git", "rev-parse", "--short=12", "HEAD"])
    if commit and results.changes(ROOT):
        return commit + " with changes"
    return commit or "unknown"


def machine():
    """The conditions of every measurement."""
    return {
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": f"{platform.system()} {platform.release()}",
        "revision": revision(),
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    }


def conditions(driver, options):
    """The conditions of the measurement."""
    versions = driver.ask("--versions")
    command = ["./dev", "bench", *options.questions]
    command += ["--seconds", f"{options.seconds:g}", "--repeats", str(options.repeats)]
    if options.locks:
        command += ["--locks", ",".join(options.locks)]
    return machine() | {
        "compiler": versions["compiler"],
        "glibc": versions["glibc"],
        "absl": versions["absl"],
        "nsync": one_line(["dpkg-query", "-W", "-f=${Version}", "libnsync-dev"]) or "unknown",
        "parking_lot": locked_versions("bench/parking_lot/Cargo.lock", "parking_lot")[0],
        "command": shlex.join(command),
    }


def markdown(table):
    """Formats a table so that it is readable as text too."""
    widths = [
        max(len(row[i]) for row in [table.header, *table.rows]) for i in range(len(table.header))
    ]

    def line(cells):
        return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths)) + " |"

    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join(
        [f"### {table.title}", "", line(table.header), rule, *map(line, table.rows), ""]
    )


def conclusion(judged):
    """The lines that count the goals, and list those not met, of an answer or of verdicts."""
    lines = [
        f"Goals met: {judged.met}; missed: {len(judged.missed)}; undecided: "
        f"{len(judged.undecided)}.",
        "",
    ]
    lines += [f"- MISSED {miss}" for miss in judged.missed]
    return lines + [f"- undecided: {one}" for one in judged.undecided]


def report(question, answer):
    busy = [
        result["cores_busy_with_others"]
        for result in answer.measurements
        if "cores_busy_with_others" in result
    ]
    lines = [f"## {answer.title} (`{question}`)", ""]
    lines += [
        f"Cores that other processes kept busy: {statistics.median(busy):.2f}, at most "
        f"{max(busy):.2f}.",
        "",
    ]
    lines += [markdown(table) for table in answer.tables] + conclusion(answer)
    return "\n".join(lines) + "\n"


def preamble(facts):
    listed = "\n".join(f"- {key.replace('_', ' ')}: {value}" for key, value in facts.items())
    return (
        f"# Results of `{facts['command']}`\n\n{listed}\n\n"
        "How to read them: `docs/benchmarks.md`.\n"
    )


def main():
    options = arguments()
    results.check(output_path(options), options.force)
    slack = options.seconds * 10 + 60
    driver = Driver(
        options.build / "bench/lockbench", options.build / "preload/libpoundlock-preload.so", slack
    )
    facts = conditions(driver, options)
    text, answers = preamble(facts), {}
    print(text)
    for question in options.questions:
        answer = QUESTIONS[question](driver, options)
        answers[question] = {
            "measurements": answer.measurements,
            "missed": answer.missed,
            "undecided": answer.undecided,
            "met": answer.met,
        }
        section = report(question, answer)
        print(section, flush=True)
        text += "\n" + section
    path = output_path(options)
    keep(path, {"schema": SCHEMA, "conditions": facts, "questions": answers}, text)


if __name__ == "__main__":
    try:
        main()
    except (BenchError, results.Unfit) as error:
        sys.exit(f"bench: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
