# SPDX-License-Identifier: MIT OR Apache-2.0
"""Groups of guests that boot one kernel: builds what they need, runs them, and judges the
results."""

from dataclasses import dataclass
from pathlib import Path

import deb
import exact
import own
import patch
from kinds import KINDS, Kind
from machine import run_guest
from parts import BUILD, build_policies, build_programs, kernel_image, release
from report import checked_module, judge_guest, number_of_cases, results_in
from root import initramfs


@dataclass
class Group:
    """Guests of one kernel: Debian's, or the one of @series that is built."""

    kind: Kind
    series: str
    guests: list

    @property
    def variant(self):
        return self.kind.variant

    def keep(self, names):
        """Drops the guests that are neither among @names nor rivals of these."""
        kept = {guest.name for guest in self.guests if guest.name in names}
        kept |= {guest.rival for guest in self.guests if guest.name in kept}
        self.guests = [guest for guest in self.guests if guest.name in kept]

    def drop(self, names):
        """Drops the guests that are among @names."""
        self.guests = [guest for guest in self.guests if guest.name not in names]

    def packages(self):
        """The packages that its kernel needs."""
        return own.packages(self.series, self.variant) if self.variant else []

    def skip(self, why, count):
        names = ", ".join(guest.name for guest in self.guests)
        count.skip(names, why, sum(number_of_cases(guest) for guest in self.guests))


def every_group():
    """All guests, of all series."""
    return [Group(kind, series, kind.guests(series)) for kind in KINDS for series in kind.series]


# ---- Running ----


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


def run_exact(group, image, tree, parts, accept, count):
    """Runs the guests of @group with QEMU 10 and compares their counts with the recorded ones, or
    else with a second run."""
    try:
        emulator = exact.Qemu(BUILD / "qemu")
    except exact.Failure as failure:
        group.skip(failure, count)
        return
    names = exact.OWN_COUNTS if group.variant else exact.COUNTS
    # Counts of a kernel or hook that is built here are not recorded.
    accept = accept and not group.variant and not group.kind.hook
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
    for guest in group.guests:
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


def can_be_built(group, count):
    """Whether the packages for the kernel of @group are installed; counts its cases as skipped if
    not."""
    lacking = own.missing(group.packages())
    if lacking:
        group.skip(f"not installed: {' '.join(lacking)}", count)
    return not lacking


def check_packages(series, count):
    """Whether the kernels of packages keep each of Debian's configurations. The trees are not
    built."""
    if lacking := own.missing(deb.packages(series)):
        why = f"not installed: {' '.join(lacking)}"
        count.skip(f"packages of {series}", why, len(deb.flavours(series)))
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


def run_group(group, count, accept=False):
    """Builds the kernel of @group, if it is not Debian's, and runs its guests. @accept: records
    exact counts."""
    name = release()
    image, tree = kernel_image(name), Path(f"/usr/src/linux-headers-{name}")
    parts, own_parts = [], []
    if group.variant:
        built = built_kernel(group.variant, group.series, count)
        image, tree, parts = built.image, built.tree, [*built.modules, *build_programs()]
        if group.variant == "patched":
            check_packages(group.series, count)
    if group.variant == "bpf":
        own_parts = build_policies()
    if group.kind.hook:
        own_parts = [checked_module(image, tree, count, "poundlock_hook", "hook")]
        parts = build_programs()
    if group.kind.exact:
        run_exact(group, image, tree, own_parts, accept, count)
    else:
        run_guests(group.guests, image, tree, [*parts, *own_parts], count)
