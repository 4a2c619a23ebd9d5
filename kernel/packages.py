#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Prints the Debian packages that parts of the kernel's tests and builds need, a line each, for
./dev. The programs that need them list them."""

import argparse
import sys

sys.dont_write_bytecode = True
import deb  # noqa: E402
import installed  # noqa: E402
import own  # noqa: E402
import parts  # noqa: E402


def of_every_series(packages):
    """@packages of each series of Linux."""
    return [package for series in own.SERIES for package in packages(series)]


PARTS = {
    "guests": parts.PACKAGES,
    "own": of_every_series(own.packages),
    "bpf": own.packages(parts.BPF_SERIES, "bpf"),
    "deb": [*of_every_series(deb.packages), *installed.PACKAGES],
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("parts", metavar="PART", nargs="+", help=", ".join(PARTS))
    chosen = parser.parse_args().parts
    if unknown := set(chosen) - set(PARTS):
        parser.error(f"there is no part '{min(unknown)}'")
    print("\n".join(sorted({package for part in chosen for package in PARTS[part]})))


if __name__ == "__main__":
    main()
