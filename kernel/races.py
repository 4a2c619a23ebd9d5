# SPDX-License-Identifier: MIT OR Apache-2.0
"""Judges of the data races that KCSAN reports in a guest."""

import re

import own
from cases import is_sound
from parts import BUILD, output

# Objects of the kernel's locks in the object tree.
LOCK_OBJECTS = [f"{own.PLACE}/{name}.o" for name in ("qspinlock", "mutex", "rwsem")]


def racing(result, series):
    """The pairs of racing functions of a run that involve the torture's or the locks' code, in the
    kernel of @series."""
    objects = [own.configuration("kcsan", series)[1] / name for name in LOCK_OBJECTS] + sorted(
        (BUILD / "module").rglob("*.o")
    )
    ours = {
        line.split()[2]
        for line in output(["nm", "-A", *objects]).splitlines()
        if re.search(r" [tT] ", line)
    }
    pairs = re.search(r"\braces=(\S*)", result.text)
    return (
        [pair for pair in pairs.group(1).split(";") if ours & set(pair.split("/"))]
        if pairs
        else None
    )


def does_not_race(result, series):
    found = racing(result, series)
    return is_sound(result) or (
        "races were not looked for"
        if found is None
        else f"a data race: {' '.join(found)}"
        if found
        else ""
    )


def races(result, series):
    return "" if racing(result, series) else "its data races were not seen"
