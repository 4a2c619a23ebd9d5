#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs the tests of parking_lot, and of crates that depend on it, with crates/poundlock-parking-lot
in its place. Cargo fetches their packages, of the versions in Cargo.lock; target/dependents/ has
the copies that are built.

Ends with `N passed, N failed`. Arguments after -- are passed to `cargo test`."""

import argparse
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PLACE = ROOT / "target/dependents"
OURS = ROOT / "crates/poundlock-parking-lot"
RESULTS = ROOT / "results/dependents.md"

# The version that crates/poundlock-parking-lot replaces.
PARKING_LOT = "0.12.5"

# Crate: version, features, and those of its development dependencies that its unit tests use.
DEPENDENTS = {
    "r2d2": ("0.8.10", [], []),
    "string_cache": ("0.8.9", [], []),
    "prometheus": ("0.14.0", [], []),
    "moka": ("0.12.16", ["sync"], ["env_logger", "getrandom", "once_cell"]),
}

# The crate of parking_lot's own tests, and the crates of --quick: seconds to build.
OWN = "parking_lot_tests"
QUICK = ["string_cache"]

# Tests of parking_lot call a private method. Its equivalent, from public ones:
CONDVAR_METHOD = """
    trait Internal {
        fn wait_while_until_internal<T: ?Sized>(
            &self,
            guard: &mut MutexGuard<'_, T>,
            condition: impl FnMut(&mut T) -> bool,
            timeout: Option<Instant>,
        ) -> parking_lot::WaitTimeoutResult;
    }

    impl Internal for Condvar {
        fn wait_while_until_internal<T: ?Sized>(
            &self,
            guard: &mut MutexGuard<'_, T>,
            condition: impl FnMut(&mut T) -> bool,
            timeout: Option<Instant>,
        ) -> parking_lot::WaitTimeoutResult {
            match timeout {
                Some(deadline) => self.wait_while_until(guard, condition, deadline),
                None => self.wait_while_for(guard, condition, Duration::MAX),
            }
        }
    }
"""

OWN_TESTS = """
[package]
name = "parking_lot_tests"
version = "0.0.0"
edition = "2021"

[features]
default = ["arc_lock", "serde"]
arc_lock = []
serde = []

[dependencies]
parking_lot = { version = "0.12", features = ["arc_lock", "serde"] }

[dev-dependencies]
bincode = "1.3.3"
rand = "0.8.3"
"""


class Unavailable(Exception):
    """Cargo could not fetch the packages: what it printed."""


def metadata(folder):
    """Cargo's description of the workspace in @folder, whose packages it fetches."""
    target = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    host = re.search("^host: (.*)$", target, re.MULTILINE)[1]
    done = subprocess.run(
        ["cargo", "metadata", "--format-version=1", "--filter-platform", host],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise Unavailable(done.stderr.strip())
    return json.loads(done.stdout)["packages"]


def fetched(dependents):
    """The folder of the package of parking_lot and of each of @dependents."""
    project = PLACE / "fetch"
    (project / "src").mkdir(parents=True)
    (project / "src/lib.rs").touch()
    shutil.copy(HERE / "Cargo.lock", project)
    versions = {name: DEPENDENTS[name][0] for name in dependents} | {"parking_lot": PARKING_LOT}
    lines = [
        f'{name} = {{ version = "={version}", features = {json.dumps(features(name))} }}'
        for name, version in versions.items()
    ]
    (project / "Cargo.toml").write_text(
        '[package]\nname = "fetch"\nversion = "0.0.0"\n[workspace]\n[dependencies]\n'
        + "\n".join(lines)
        + "\n"
    )
    return {
        package["name"]: pathlib.Path(package["manifest_path"]).parent
        for package in metadata(project)
        if versions.get(package["name"]) == package["version"]
    }


def features(name):
    return DEPENDENTS[name][1] if name in DEPENDENTS else []


def sections(manifest):
    """The manifest, split before each table's heading."""
    return re.split(r"^(?=\[)", manifest, flags=re.MULTILINE)


def dropped(section, kept):
    """Whether @section is of no use to unit tests: another target, or a dependency of one."""
    if re.match(r"\[\[(bench|example|test|bin)\]\]", section):
        return True
    found = re.match(r"\[(?:target\..*\.)?dev-dependencies\.\"?([\w-]+)", section)
    return found is not None and found[1] not in kept


def copy_dependent(name, package):
    kept = DEPENDENTS[name][2]
    shutil.copytree(
        package,
        PLACE / name,
        ignore=shutil.ignore_patterns("Cargo.lock", "Cargo.toml.orig", "tests"),
    )
    manifest = PLACE / name / "Cargo.toml"
    text = "".join(
        section for section in sections(manifest.read_text()) if not dropped(section, kept)
    )
    manifest.write_text(text)


def copy_own_tests(package):
    """The modules of tests in parking_lot's sources, and its folder tests/, as a crate of tests."""
    place = PLACE / "parking_lot_tests"
    shutil.copytree(package / "tests", place / "tests")
    (place / "src").mkdir()
    (place / "src/lib.rs").touch()
    (place / "Cargo.toml").write_text(OWN_TESTS)
    count = 0
    for source in sorted((package / "src").glob("*.rs")):
        _, mark, tests = source.read_text().partition("#[cfg(test)]")
        if not mark or source.stem == "deadlock":
            continue
        tests = tests.replace("use crate::", "use parking_lot::")
        if "wait_while_until_internal" in tests:
            tests = tests.replace("mod tests {\n", "mod tests {\n" + CONDVAR_METHOD, 1)
        (place / f"tests/{source.stem}.rs").write_text(mark + tests)
        count += tests.count("#[test]")
    return count


def make_workspace(dependents):
    """Copies the crates into a workspace in which parking_lot is ours."""
    shutil.rmtree(PLACE / "fetch", ignore_errors=True)
    packages = fetched(dependents)
    for name in [OWN, *DEPENDENTS]:
        shutil.rmtree(PLACE / name, ignore_errors=True)
    for name in dependents:
        copy_dependent(name, packages[name])
    if copy_own_tests(packages["parking_lot"]) < 40:
        sys.exit("dependents: most of parking_lot's tests were not found")
    (PLACE / "Cargo.toml").write_text(
        f'[workspace]\nresolver = "2"\nmembers = {json.dumps([OWN, *dependents])}\n'
        f'[patch.crates-io]\nparking_lot = {{ path = "{OURS}" }}\n'
    )
    shutil.copy(HERE / "Cargo.lock", PLACE)
    used = [
        package["manifest_path"]
        for package in metadata(PLACE)
        if package["name"] == "parking_lot" and package["version"].startswith("0.12.")
    ]
    if used != [str(OURS / "Cargo.toml")]:
        sys.exit(f"dependents: the crates would use {used}")


def run(name, arguments):
    """Runs the tests of the crate @name. Returns how many passed, failed and were ignored."""
    # Less debug information makes for half of the build.
    environment = os.environ | {
        "CARGO_TARGET_DIR": str(PLACE / "target"),
        "CARGO_PROFILE_DEV_DEBUG": "0",
    }
    command = ["cargo", "test", "-p", name, "--lib", "--tests", "--no-fail-fast"]
    command += ["--features", ",".join(features(name)), *arguments]
    process = subprocess.Popen(
        command, cwd=PLACE, env=environment, stdout=subprocess.PIPE, text=True
    )
    counts = [0, 0, 0]
    for line in process.stdout:
        print(line, end="", flush=True)
        found = re.match(r"test result: .*?(\d+) passed; (\d+) failed; (\d+) ignored", line)
        if found:
            counts = [count + int(more) for count, more in zip(counts, found.groups())]
    # A crate that does not build, or a test that ends its process, is a failure that none counts.
    if process.wait() and not counts[1]:
        counts[1] = 1
    return counts


def one_line(*command):
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT).stdout.strip()


def report(counts):
    versions = {name: DEPENDENTS[name][0] for name in DEPENDENTS} | {OWN: PARKING_LOT}
    rows = [
        f"| {'parking_lot' if name == OWN else name} | {versions[name]} | "
        + " | ".join(map(str, count))
        + " |\n"
        for name, count in counts.items()
    ]
    changed = " with changes" if one_line("git", "status", "--porcelain", "-uno") else ""
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    return (
        "# Results of `./dev dependents`\n\n"
        "Unit tests of crates, and the tests of parking_lot, with crates/poundlock-parking-lot in "
        "the\nplace of parking_lot.\n\n"
        f"- revision: {one_line('git', 'rev-parse', '--short=12', 'HEAD')}{changed}\n"
        f"- date: {now}\n- rustc: {one_line('rustc', '--version')}\n\n"
        "| crate | version | passed | failed | ignored |\n|---|---|---:|---:|---:|\n"
        + "".join(rows)
    )


def options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"only parking_lot's own tests and {', '.join(QUICK)}",
    )
    parser.add_argument(
        "--if-possible", action="store_true", help="succeed if cargo cannot fetch the packages"
    )
    parser.add_argument("--keep", action="store_true", help=f"write {RESULTS.relative_to(ROOT)}")
    parser.add_argument("arguments", nargs="*", metavar="ARGUMENT", help="for `cargo test`")
    return parser.parse_args()


def main():
    chosen = options()
    dependents = QUICK if chosen.quick else list(DEPENDENTS)
    try:
        make_workspace(dependents)
    except Unavailable as error:
        print(f"dependents: {'skipped: ' if chosen.if_possible else ''}{error}")
        return not chosen.if_possible
    counts = {name: run(name, chosen.arguments) for name in [OWN, *dependents]}
    if chosen.keep:
        RESULTS.write_text(report(counts))
    passed, failed, _ = map(sum, zip(*counts.values()))
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
