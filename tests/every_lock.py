#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Checks that every lock of core/locks.def has everything that a lock must have: a page, counted
atomics, an entry in the documents, clients of the model checker and in C11, stress tests with and
without injected yields, and the real programs; and that none of these names an unknown lock. The
argument is the build folder, whose tests are listed. --self-test checks that a lack is reported.
"""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


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
    shown = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True, capture_output=True, text=True)
    return "\n".join(test["name"] for test in json.loads(shown.stdout)["tests"])


def places(build):
    """Yields (requirement, the locks that meet it) pairs."""
    tests = tests_of(build)
    pages = (ROOT / "docs/locks").glob("*.md")
    yield "a page in docs/locks/", {page.stem for page in pages if page.read_text().startswith(f"# {page.stem}:")}
    yield "counted atomics in lib/atomics.def", names(r"^(?:RW_)?ATOMICS\((\w+),", text("lib/atomics.def"))
    yield "a place in docs/locks.md", names(r"\(locks/(\w+)\.md\)", text("docs/locks.md"))
    yield "clients in tests/check/expected.txt", names(r"^(\w+)/", text("tests/check/expected.txt")) - {"litmus", "records", "seeded"}
    yield "a stress test", names(r"^stress\.(\w+)\.", tests)
    yield "a stress test with yields", names(r"^stress-yields\.(\w+)\.", tests)
    yield "clients in C11", names(r"^c11\.(\w+)$", tests) - {"documented"}
    yield "the real programs", programs()


def complaints(locks, found, others):
    """@others: names that are pages or the like without being locks."""
    for what, having in found:
        yield from (f"{lock} has not: {what}" for lock in sorted(locks - having))
        yield from (f"{lock} is no lock and has: {what}" for lock in sorted(having - locks - others))


def main():
    build = sys.argv[1]
    definitions = text("core/locks.def")
    locks = names(r"^(?:RW)?LOCK\((\w+),", definitions)
    found = list(places(build))
    if "--self-test" in sys.argv:
        seen = list(complaints(locks | {"phantom"}, found, set()))
        lacks = [f"phantom has not: {what}" for what, _ in found]
        spare = list(complaints(locks - {"mcs"}, found, set()))
        assert locks and all(lack in seen for lack in lacks), seen
        assert all(f"mcs is no lock and has: {what}" in spare for what, _ in found), spare
        return
    # bravo works over any of them, and has a page.
    wrong = list(complaints(locks, found, {"bravo"}))
    print(*wrong, sep="\n", end="\n" if wrong else "")
    sys.exit(1 if wrong else 0)


main()
