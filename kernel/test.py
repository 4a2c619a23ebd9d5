#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tortures Poundlock's locks inside Linux, in QEMU guests, and checks their promises by counts.

The guests are in guests.py, and their kinds in kinds.py. Time has no meaning in them, so only
counts are checked. Every guest must end by itself within its limit, else the last lines of its
console are printed. The last line is `N passed, N failed`.
"""

import argparse
import subprocess
import sys

sys.dont_write_bytecode = True
import exact  # noqa: E402
import own  # noqa: E402
from groups import can_be_built, every_group, run_group  # noqa: E402
from kinds import OF_TEST, OPTIONS  # noqa: E402
from parts import PACKAGES, Failure, kernel_image, release  # noqa: E402
from report import Count  # noqa: E402


def chosen_groups(parser, arguments):
    """The groups that the command line asks for, without empty ones."""
    versions = arguments.linux or own.SERIES[:1]
    every = every_group()
    groups = [
        group
        for group in every
        if all(getattr(arguments, option) for option in group.kind.options)
        and (len(group.kind.series) == 1 or group.series in versions)
    ]
    if arguments.only:
        unknown = set(arguments.only) - {guest.name for group in groups for guest in group.guests}
        if unknown:
            parser.error(f"there is no guest '{min(unknown)}'")
    if arguments.of_test:
        groups = every
    for group in groups if arguments.only or arguments.of_test else []:
        group.keep(OF_TEST if arguments.of_test else arguments.only)
    return [group for group in groups if group.guests]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "--only", metavar="GUEST", action="append", help="run this guest alone; may be repeated"
    )
    for option, adds in OPTIONS.items():
        parser.add_argument(f"--{option}", action="store_true", help=f"also {adds}")
    parser.add_argument(
        "--of-test", action="store_true", help="only the guests of `./dev test`, of any option"
    )
    parser.add_argument(
        "--if-possible", action="store_true", help="succeed, and say so, where packages are missing"
    )
    parser.add_argument(
        "--accept",
        action="store_true",
        help="with --exact: what it counts is what is expected from now on",
    )
    parser.add_argument(
        "--linux",
        choices=own.SERIES,
        action="append",
        help=f"series of the kernels that are built; may be repeated (default: {own.SERIES[0]})",
    )
    arguments = parser.parse_args()
    groups, count = chosen_groups(parser, arguments), Count()
    if arguments.if_possible:
        groups = [group for group in groups if can_be_built(group, count)]
    try:
        needed = [package for group in groups for package in group.packages()]
        own.check_installed(PACKAGES + needed)
        kernel_image(release())
    except (Failure, own.Failure) as failure:
        print(f"kernel: {'skipped, ' if arguments.if_possible else ''}{failure}")
        return not arguments.if_possible
    for group in groups:
        run_group(group, count, arguments.accept)
    count.sum_up()
    return count.failed > 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failure, own.Failure, exact.Failure, subprocess.SubprocessError, OSError) as problem:
        sys.exit(f"kernel: {problem}")
