#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Checks what a program's linker sees of the library.

Usage: abi.py SHARED STATIC NM READELF              compares both with symbols.txt
       abi.py SHARED STATIC NM READELF --self-test  checks that each difference is reported

symbols.txt: the name that programs record (SONAME), then every exported symbol. A symbol that is
added goes into the list. One that is removed, or whose meaning changes, breaks programs that are
already linked: it also needs another SONAME, that is, another major version.
"""

import subprocess
import sys
from pathlib import Path

LIST = Path(__file__).with_name("symbols.txt")
PREFIX = "pound_"


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def symbols(nm, library, *options):
    lines = output(
        nm, "--defined-only", "--extern-only", "--format=posix", *options, library
    ).splitlines()
    return {words[0] for words in map(str.split, lines) if len(words) > 1}


def soname(readelf, library):
    for line in output(readelf, "--wide", "--dynamic", library).splitlines():
        if "(SONAME)" in line:
            return line.split("[")[1].split("]")[0]
    return "no SONAME"


def differences(listed, name, shared, static):
    """One line for each difference between the list and the libraries."""
    listed_name, listed_symbols = listed[0], set(listed[1:])
    if name != listed_name:
        yield f"the SONAME is {name}, {LIST.name} has {listed_name}"
    for symbol in sorted(listed_symbols - shared):
        yield (
            f"{symbol} is no longer exported: linked programs break. "
            "Raise the major version, or restore it"
        )
    for symbol in sorted(shared - listed_symbols):
        yield f"{symbol} is exported and not in {LIST.name}: add it, or hide it"
    for symbol in sorted(listed_symbols - static):
        yield f"{symbol} is missing from the static library"
    for symbol in sorted(static - listed_symbols):
        why = (
            "is not in the shared one"
            if symbol.startswith(PREFIX)
            else "can collide with a program's own"
        )
        yield f"{symbol} is global in the static library and {why}: hide it"
    for symbol in sorted(symbol for symbol in listed_symbols if not symbol.startswith(PREFIX)):
        yield f"{symbol} does not begin with {PREFIX}"


def self_test():
    good = (["a.so.0", "pound_a"], "a.so.0", {"pound_a"}, {"pound_a"})
    assert not list(differences(*good))
    for bad in [
        (["a.so.1", "pound_a"], *good[1:]),
        (["a.so.0"], *good[1:]),
        (["a.so.0", "pound_a", "pound_b"], *good[1:]),
        (*good[:2], set(), {"pound_a"}),
        (*good[:3], set()),
        (*good[:3], {"pound_a", "pound_b"}),
        (*good[:3], {"pound_a", "box_get"}),
        (["a.so.0", "a"], "a.so.0", {"a"}, {"a"}),
    ]:
        assert list(differences(*bad)), bad


def main():
    shared, static, nm, readelf = sys.argv[1:5]
    if sys.argv[5:] == ["--self-test"]:
        return self_test()
    listed = LIST.read_text().split()
    found = list(
        differences(
            listed, soname(readelf, shared), symbols(nm, shared, "--dynamic"), symbols(nm, static)
        )
    )
    if found:
        raise SystemExit("\n".join(found))


main()
