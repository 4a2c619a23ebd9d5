#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tortures Poundlock's locks inside Linux, in QEMU guests, and checks their promises by counts.

The guests are in guests.py. Time has no meaning in them, so only counts are checked. Every guest
must end by itself within its limit, else the last lines of its console are printed. The last line
is `N passed, N failed`.
"""

import argparse
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

sys.dont_write_bytecode = True
import deb  # noqa: E402
import exact  # noqa: E402
import guests  # noqa: E402
import own  # noqa: E402
import patch  # noqa: E402
from machine import run_guest  # noqa: E402
from parts import (  # noqa: E402
    BPF_SERIES,
    BUILD,
    PACKAGES,
    Failure,
    build_policies,
    build_stress,
    kernel_image,
    locks,
    release,
)
from report import Count, checked_module, judge_guest, results_in  # noqa: E402
from root import initramfs  # noqa: E402


def run_guests(chosen, image, tree, parts, count):
    """Builds the module for the kernel of @tree, then runs and checks the guests, with @parts."""
    module = checked_module(image, tree, count)
    for guest in chosen:
        with count.part(guest.name):
            judge_guest(guest, *run_guest(guest, image, initramfs(guest, [module, *parts])), count)


def built_kernel(variant, series, count):
    """Our own kernel, up to date."""
    with count.part(f"the kernel {series}, {variant}"):
        return patch.build(series) if variant == "patched" else own.build(variant, series)


def compare_moves(guest, found, of_rival, count):
    """Whether @guest moved at most as many cache lines, in each case, as its rival."""
    for case in guest.cases:
        count.case(
            f"{guest.name}: {case.key}: moves no more lines than {guest.rival}",
            *exact.compared_moves(found.get(case.key), of_rival.get(case.key)),
        )


def run_exact(chosen, image, tree, parts, names, accept, count):
    """Runs the guests @chosen with QEMU 10 and compares the counts @names with the recorded ones,
    or else with a second run."""
    try:
        emulator = exact.Qemu(BUILD / "qemu")
    except exact.Failure as failure:
        print(f"kernel: skipped {', '.join(guest.name for guest in chosen)}: {failure}")
        return
    module = checked_module(image, tree, count)
    compiler = exact.output("gcc", "--version").splitlines()[0]
    busybox = exact.output("dpkg-query", "-W", "busybox-static").replace("\t", " ").strip()
    record = exact.Record(f"{emulator.version}; {image.name}; {compiler}; {busybox}")

    def counted(guest, archive):
        with count.part(guest.name):
            lines, wrong = run_guest(guest, image, archive, emulator)
        judge_guest(guest, lines, wrong, count)
        results = [(case.key, result.text) for case, result in zip(guest.cases, results_in(lines))]
        return exact.counts_of(names, results, lines)

    every = {}
    for guest in chosen:
        archive = initramfs(guest, [module, *parts])
        found, expected, of = (
            counted(guest, archive),
            None if accept else record.of(guest.name),
            "recorded",
        )
        if expected is None:
            why = (
                "what it counts is recorded"
                if accept
                else f"nothing is recorded of it for {record.key}"
            )
            print(f"     {guest.name} runs a second time: {why}", flush=True)
            expected, of = counted(guest, archive), "of the second run"
        for case in guest.cases:
            first, other = found.get(case.key), expected.get(case.key)
            same = first is not None and first == other
            count.case(
                f"{guest.name}: {case.key}: what was counted is what is {of}",
                "" if same else f"{first}, and {other}",
                str(first),
            )
        every[guest.name] = found
        if guest.rival:
            compare_moves(guest, found, every[guest.rival], count)
        if accept and found == expected:
            record.take(guest.name, found)


@dataclass
class Group:
    """Guests of one kernel: Debian's, or the @variant of @series that is built."""

    guests: list
    variant: str = ""
    series: str = ""
    exact: bool = False
    hook: bool = False  # with the module poundlock_hook


def own_groups(arguments, series):
    """The groups of guests whose kernel is built from the sources of @series."""
    groups = [
        Group(guests.own_guests() if arguments.own else [], "plain", series),
        Group(
            guests.distribution_guests() if arguments.distribution else [], "distribution", series
        ),
        Group(guests.patched_guests() if arguments.patched else [], "patched", series),
        Group(guests.checked_guests() if arguments.checked else [], "checked", series),
        Group(guests.kcsan_guests(locks(), series) if arguments.kcsan else [], "kcsan", series),
        Group(
            guests.own_exact_guests() if arguments.exact and arguments.own else [],
            "plain",
            series,
            exact=True,
        ),
    ]
    if series != own.SERIES[0]:
        for group in groups:
            for guest in group.guests:
                guest.name += f"-{series}"
                guest.rival = guest.rival and f"{guest.rival}-{series}"
    return groups


def chosen_groups(parser, arguments, versions):
    """The groups that the command line asks for, without empty ones."""
    groups = [
        Group(guests.module_guests(locks())),
        Group(guests.hook_guests() if arguments.hook else [], hook=True),
        Group(guests.exact_guests() if arguments.exact else [], exact=True),
        Group(
            guests.hook_exact_guests() if arguments.exact and arguments.hook else [],
            exact=True,
            hook=True,
        ),
    ]
    for series in versions:
        groups += own_groups(arguments, series)
    groups += [
        Group(guests.bpf_guests() if arguments.bpf else [], "bpf", BPF_SERIES),
        Group(
            guests.bpf_exact_guests() if arguments.exact and arguments.bpf else [],
            "bpf",
            BPF_SERIES,
            exact=True,
        ),
    ]
    if arguments.only:
        unknown = set(arguments.only) - {guest.name for group in groups for guest in group.guests}
        if unknown:
            parser.error(f"there is no guest '{min(unknown)}'")
        for group in groups:
            kept = {guest.name for guest in group.guests if guest.name in arguments.only}
            kept |= {guest.rival for guest in group.guests if guest.name in kept}
            group.guests = [guest for guest in group.guests if guest.name in kept]
    return [group for group in groups if group.guests]


def can_be_built(group):
    """Whether the packages for the kernel of @group are installed; reports those that are not."""
    lacking = own.missing(own.packages(group.series, group.variant)) if group.variant else []
    if lacking:
        print(
            f"kernel: skipped {', '.join(guest.name for guest in group.guests)}: not installed: "
            f"{' '.join(lacking)}"
        )
    return not lacking


def check_packages(series, count):
    """Whether the kernels of packages keep each of Debian's configurations. The trees are not
    built."""
    if lacking := own.missing(deb.packages(series)):
        print(f"kernel: skipped packages of {series}: not installed: {' '.join(lacking)}")
        return
    tree = patch.sources(series)
    for flavour in sorted(deb.flavours(series)):
        wrong = ""
        try:
            with count.part(f"configuration of packages of {series}"):
                deb.Build(series, flavour).configure(tree)
        except own.Failure as failure:
            wrong = str(failure)
        count.case(
            f"packages of Linux {series}: Debian's configuration of {flavour} is kept", wrong
        )


def run_group(group, image, headers, accept, count):
    """Builds the kernel of @group, if it is not Debian's @image with its @headers, and runs it."""
    tree, parts, own_parts = headers, [], []
    if group.variant:
        built = built_kernel(group.variant, group.series, count)
        image, tree, parts = built.image, built.tree, [*built.modules, build_stress()]
        if group.variant == "patched":
            check_packages(group.series, count)
    if group.variant == "bpf":
        own_parts = build_policies()
    if group.hook:
        own_parts = [checked_module(image, tree, count, "poundlock_hook", "hook")]
        parts = [build_stress()]
    if group.exact:
        names = exact.OWN_COUNTS if group.variant else exact.COUNTS
        # Counts of a kernel or hook that is built here are not recorded.
        accept = accept and not group.variant and not group.hook
        run_exact(group.guests, image, tree, own_parts, names, accept, count)
    else:
        run_guests(group.guests, image, tree, [*parts, *own_parts], count)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "--only", metavar="GUEST", action="append", help="run this guest alone; may be repeated"
    )
    parser.add_argument(
        "--own", action="store_true", help="also a kernel with Poundlock's locks as its own"
    )
    parser.add_argument(
        "--hook",
        action="store_true",
        help="also the module that orders the spin locks' waiters of an unmodified kernel",
    )
    parser.add_argument(
        "--distribution",
        action="store_true",
        help="also a preemptible kernel that has hypervisors' spin locks",
    )
    parser.add_argument(
        "--patched", action="store_true", help="also a kernel from patched sources (patch.py)"
    )
    parser.add_argument(
        "--checked", action="store_true", help="also a kernel that checks how its locks are used"
    )
    parser.add_argument(
        "--bpf", action="store_true", help="also a kernel 6.12 that loads policies as BPF programs"
    )
    parser.add_argument(
        "--if-possible", action="store_true", help="succeed, and say so, where packages are missing"
    )
    parser.add_argument(
        "--kcsan", action="store_true", help="also a kernel that looks for data races"
    )
    parser.add_argument(
        "--exact", action="store_true", help="also guests whose counts are the same in each run"
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
    versions = arguments.linux or own.SERIES[:1]
    groups = chosen_groups(parser, arguments, versions)
    if arguments.if_possible:
        groups = [group for group in groups if can_be_built(group)]
    needed = PACKAGES + [
        package
        for group in groups
        if group.variant
        for package in own.packages(group.series, group.variant)
    ]
    try:
        own.check_installed(needed)
        name = release()
        image = kernel_image(name)
    except (Failure, own.Failure) as failure:
        print(f"kernel: {'skipped, ' if arguments.if_possible else ''}{failure}")
        return not arguments.if_possible
    count = Count()
    for group in groups:
        run_group(group, image, Path(f"/usr/src/linux-headers-{name}"), arguments.accept, count)
    count.sum_up()
    return count.failed > 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failure, own.Failure, exact.Failure, subprocess.SubprocessError, OSError) as problem:
        sys.exit(f"kernel: {problem}")
