#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Checks that every lock of core/locks.def is complete, and that no removed lock has leftovers.

Prints one line per missing part, with the file to write or the command to run.

Usage: every_lock.py BUILD              BUILD: the build directory whose tests are examined
       every_lock.py BUILD --self-test  checks that each missing part and each leftover is reported
"""

import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
# Names in tests/check/explorations.csv and docs/locks/ that belong to no single lock.
OWN_CLIENTS = set(
    "bravo_any_rw cfl_mutex_any cfl_spin_any cond cond_word control futex hook kernel_cfl "
    "kernel_cfl_any kernel_cfl_mutex kernel_cfl_mutex_any kernel_mutex kernel_park kernel_rwsem "
    "kernel_tuning litmus once policies qspinlock records recursive seeded sema shfl_mutex_word "
    "shfl_ron_parts shfl_ron_steady statistics stays tables tickets".split()
)
SHARED_PAGES = {"bravo"}
# Tests beside those of the locks: other types; toy, the example of CONTRIBUTING.md.
OTHER_C11 = {"cond", "documented", "once", "recursive", "sema", "toy"} | {
    name for name in OWN_CLIENTS if name.startswith("kernel_") or name in ("hook", "qspinlock")
}


class Place(NamedTuple):
    """A part of every lock: its name, how to add it for the lock {}, and the locks with it."""

    what: str
    remedy: str
    having: set


def text(path):
    return (ROOT / path).read_text()


def names(pattern, source):
    return set(re.findall(pattern, source, re.MULTILINE))


def programs():
    """The locks under which tests/programs/run.py runs the real programs."""
    sys.path.insert(0, str(ROOT / "tests/programs"))
    spec = importlib.util.spec_from_file_location("programs_run", ROOT / "tests/programs/run.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return set(module.LOCKS) | set(module.RWLOCKS)


def tests_of(build):
    shown = subprocess.run(
        ["ctest", "--test-dir", build, "--show-only=json-v1"],
        check=True,
        capture_output=True,
        text=True,
    )
    return "\n".join(test["name"] for test in json.loads(shown.stdout)["tests"])


def pages():
    found = {
        page.stem
        for page in (ROOT / "docs/locks").glob("*.md")
        if page.read_text().startswith(f"# {page.stem}:")
    }
    return found - SHARED_PAGES


def features(crate):
    """The locks that are a feature of @crate, on by default."""
    table = tomllib.loads(text(f"crates/{crate}/Cargo.toml"))["features"]
    return set(table["default"]) & set(table)


def places(build):
    tests = tests_of(build)
    again = "run cmake on the build folder again"
    return [
        Place("a page", "write docs/locks/{}.md; its first line begins with '# {}:'", pages()),
        Place(
            "counted atomics",
            "run ./dev document, which writes lib/atomics.def",
            names(r"^(?:RW_)?ATOMICS\((\w+),", text("lib/atomics.def")),
        ),
        Place(
            "a row in docs/locks.md",
            "run ./dev document, which writes it",
            names(r"^\| \[`\w+`\]\(locks/(\w+)\.md\)", text("docs/locks.md")),
        ),
        Place(
            "explored clients",
            "run ./dev check {}/ --accept, which writes tests/check/explorations.csv",
            names(r"^(\w+)/", text("tests/check/explorations.csv")) - OWN_CLIENTS,
        ),
        Place("a stress test", again, names(r"^stress\.(\w+)\.", tests)),
        Place("a stress test with yields", again, names(r"^stress-yields\.(\w+)\.", tests)),
        Place("clients in C11", again, names(r"^c11\.(\w+)$", tests) - OTHER_C11),
        Place(
            "a feature of poundlock-sys",
            "add it to [features] in crates/poundlock-sys/Cargo.toml, and to its default",
            features("poundlock-sys"),
        ),
        Place(
            "a feature of poundlock",
            "add it to [features] in crates/poundlock/Cargo.toml, and to its default",
            features("poundlock"),
        ),
        Place("the real programs", "see LOCKS and RWLOCKS in tests/programs/run.py", programs()),
    ]


def complaints(locks, found):
    for place in found:
        for lock in sorted(locks - place.having):
            yield f"{lock} lacks {place.what}: {place.remedy.replace('{}', lock)}"
        for lock in sorted(place.having - locks):
            yield f"{lock} has {place.what} but is not in core/locks.def"


def self_test(locks, found):
    lacks = list(complaints(locks | {"phantom"}, found))
    leftovers = list(complaints(locks - {"mcs"}, found))
    for place in found:
        assert any(line.startswith(f"phantom lacks {place.what}: ") for line in lacks), (
            place.what,
            lacks,
        )
        assert f"mcs has {place.what} but is not in core/locks.def" in leftovers, (
            place.what,
            leftovers,
        )


def main():
    locks = names(r"^(?:RW)?LOCK\((\w+),", text("core/locks.def"))
    found = places(sys.argv[1])
    if "--self-test" in sys.argv:
        self_test(locks, found)
        return
    wrong = list(complaints(locks, found))
    print(*wrong, sep="\n", end="\n" if wrong else "")
    sys.exit(1 if wrong else 0)


main()
