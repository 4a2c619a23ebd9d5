#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compares the licence in each crate's Cargo.toml with the SPDX lines of its sources, and checks
that each crate has a readme.

A source without an SPDX line has the workspace's licence. Prints one line per violation, and exits
with 1 if there are any."""

import pathlib
import re
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]
SOURCES = {".rs", ".c", ".h", ".def"}
SPDX = re.compile(r"SPDX-License-Identifier: ([\w. -]+?)(?: \*/)?$", re.MULTILINE)


def sources(folder):
    """The sources below @folder, also those of the folders that it links to."""
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            yield from sources(path)
        elif path.suffix in SOURCES:
            yield path


def licence_of(path, default):
    found = SPDX.search(path.read_text())
    return found[1] if found else default


def joined(licences):
    """The SPDX expression for a crate whose files have @licences.

    >>> joined({"MIT OR GPL-2.0-only", "MIT OR Apache-2.0"})
    '(MIT OR Apache-2.0) AND (MIT OR GPL-2.0-only)'
    """
    return (
        " AND ".join(f"({one})" for one in sorted(licences)) if len(licences) > 1 else min(licences)
    )


def violations(crate, default):
    package = tomllib.loads((crate / "Cargo.toml").read_text())["package"]
    stated = package["license"] if isinstance(package["license"], str) else default
    found = joined({licence_of(path, default) for path in sources(crate)})
    if stated != found:
        yield f"license is '{stated}'; the sources are '{found}'"
    if package.get("readme") != "README.md" or not (crate / "README.md").is_file():
        yield "write README.md, and 'readme = \"README.md\"'"


def main():
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    wrong = 0
    for manifest in sorted((ROOT / "crates").glob("*/Cargo.toml")):
        for what in violations(manifest.parent, workspace["package"]["license"]):
            print(f"{manifest.relative_to(ROOT)}: {what}")
            wrong += 1
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
