#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Measures crates that depend on parking_lot, with parking_lot and with
crates/poundlock-parking-lot in its place: bench/dependents is built twice. See
docs/benchmarks.md."""

import re
import shlex
import shutil
import subprocess
import sys

import results
from command_line import Parser
from measure import BenchError, Case, Contestant, instructions, interleave, measure
from questions import ROOT, Comparison, Table, flat, spread
from run import keep, locked_versions, machine, markdown, preamble

SCHEMA = 1
SOURCE = ROOT / "bench/dependents"
PLACE = ROOT / "target/bench-dependents"
OURS = ROOT / "crates/poundlock-parking-lot"
CRATES = ["prometheus", "r2d2", "string_cache", "moka"]
THREADS = [1, 2, 4]
THEIRS = Contestant("parking_lot", "parking_lot")
POUNDLOCK = Contestant("poundlock-parking-lot", "poundlock")


def arguments():
    parser = Parser(prog="bench dependents", description=__doc__)
    parser.add_seconds(0.5)
    parser.add_repeats(7, "of every measurement")
    results.add_options(parser, "bench-dependents")
    return parser.parse_args()


def build(contestant):
    """The program with the locks of @contestant."""
    place = PLACE / contestant.lock
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(SOURCE, place)
    if contestant == POUNDLOCK:
        with open(place / "Cargo.toml", "a") as manifest:
            manifest.write(f'\n[patch.crates-io]\nparking_lot = {{ path = "{OURS}" }}\n')
    target = PLACE / f"target-{contestant.lock}"
    command = ["cargo", "build", "--release", "--quiet", "--target-dir", str(target)]
    if subprocess.run(command, cwd=place).returncode:
        raise BenchError("bench/dependents does not build")
    command = ["cargo", "tree", "--invert", "parking_lot@0.12.5", "--depth", "0"]
    tree = subprocess.run(command, cwd=place, capture_output=True, text=True).stdout
    if (str(OURS) in tree) != (contestant == POUNDLOCK):
        raise BenchError(f"{contestant.name}: the crates would use {tree.strip() or 'another'}")
    return target / "release/bench-dependents"


def conditions(options):
    versions = {
        name: locked_versions(SOURCE / "Cargo.lock", name)[0] for name in ["parking_lot", *CRATES]
    }
    command = ["./dev", "bench", "dependents"]
    command += ["--seconds", f"{options.seconds:g}", "--repeats", str(options.repeats)]
    compiler = subprocess.run(["rustc", "--version"], capture_output=True, text=True).stdout
    return (
        machine()
        | {"compiler": re.match(r"rustc [\d.]+", compiler)[0]}
        | versions
        | {"command": shlex.join(command)}
    )


def instructions_each(program, crate):
    """Instructions of one operation of one thread."""
    few, many = (
        instructions([str(program), crate, "--operations", str(count)], {})
        for count in (10_000, 60_000)
    )
    return (many - few) / 50_000


def counts(crate, programs):
    """The line below the crate's table."""
    parking_lot, ours = (
        instructions_each(programs[who.name], crate) for who in (THEIRS, POUNDLOCK)
    )
    return f"Instructions per operation of one thread: {parking_lot:.0f}, {ours:.0f}.\n"


def table(crate, cases, found):
    header = ["threads", "parking_lot, M/s", "poundlock, M/s", "ratio"]
    rows = []
    for case in cases:
        compared = Comparison(found, case, "per_second")
        rates = [f"{compared.median(who.name) / 1e6:.3f}" for who in (THEIRS, POUNDLOCK)]
        ratios = compared.ratios(POUNDLOCK.name, THEIRS.name)
        rows.append([case.arguments[1], *rates, spread(ratios)])
    return Table(crate, header, rows)


def main():
    options = arguments()
    results.check(options.output, options.force)
    programs = {who.name: build(who) for who in (THEIRS, POUNDLOCK)}
    facts = conditions(options)
    cases = {
        crate: [
            Case(f"{crate}, threads {count}", (crate, str(count), f"{options.seconds:g}"))
            for count in THREADS
        ]
        for crate in CRATES
    }
    found = interleave(
        "dependents",
        [case for some in cases.values() for case in some],
        [THEIRS, POUNDLOCK],
        options.repeats,
        lambda who, case: measure(
            [str(programs[who.name]), *case.arguments], {}, options.seconds * 10 + 60
        ),
    )
    tables = [
        markdown(table(crate, some, found)) + "\n" + counts(crate, programs)
        for crate, some in cases.items()
    ]
    busy = max(result["cores_busy_with_others"] for some in found.values() for result in some)
    text = (
        preamble(facts)
        + "\nMedians of the rates, in million operations per second, and of the ratios within "
        + "each repeat\n(with 95 % confidence intervals). Other processes kept at most "
        + f"{busy:.2f} cores busy.\n\n"
        + "\n".join(tables)
    )
    print(text)
    keep(
        options.output,
        {"schema": SCHEMA, "conditions": facts, "measurements": flat(found)},
        text,
    )


if __name__ == "__main__":
    try:
        main()
    except (BenchError, results.Unfit) as error:
        sys.exit(f"bench: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
