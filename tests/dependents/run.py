#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs the tests of parking_lot, and of crates that depend on it, with crates/poundlock-parking-lot
in its place. Cargo fetches their packages; target/parking_lot/ has the copies that are built.

Ends with the summaries of `cargo test`, and exits with its status. Arguments are passed to it."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACE = ROOT / "target/parking_lot"
OURS = ROOT / "crates/poundlock-parking-lot"

# The version that crates/poundlock-parking-lot replaces.
PARKING_LOT = "0.12.5"

# Crate: version, features, and those of its development dependencies that its unit tests use.
DEPENDENTS = {
    "r2d2": ("0.8.10", [], []),
    "string_cache": ("0.8.9", [], []),
    "prometheus": ("0.14.0", [], []),
    "moka": ("0.12.16", ["sync"], ["env_logger", "getrandom", "once_cell"]),
}

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


def cargo(*arguments, folder, **options):
    return subprocess.run(["cargo", *arguments], cwd=folder, check=True, text=True, **options)


def fetched():
    """The folder of each crate's package."""
    project = PLACE / "fetch"
    (project / "src").mkdir(parents=True)
    (project / "src/lib.rs").touch()
    lines = [
        f'{name} = {{ version = "={version}", features = {json.dumps(features)} }}'
        for name, (version, features, _) in DEPENDENTS.items()
    ]
    lines.append(f'parking_lot = "={PARKING_LOT}"')
    (project / "Cargo.toml").write_text(
        '[package]\nname = "fetch"\nversion = "0.0.0"\n[workspace]\n[dependencies]\n'
        + "\n".join(lines)
        + "\n"
    )
    metadata = json.loads(
        cargo("metadata", "--format-version=1", folder=project, stdout=subprocess.PIPE).stdout
    )
    versions = {name: version for name, (version, _, _) in DEPENDENTS.items()} | {
        "parking_lot": PARKING_LOT
    }
    return {
        package["name"]: pathlib.Path(package["manifest_path"]).parent
        for package in metadata["packages"]
        if versions.get(package["name"]) == package["version"]
    }


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
    _, features, kept = DEPENDENTS[name]
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
    return [f"{name}/{feature}" for feature in features]


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


def main(arguments):
    shutil.rmtree(PLACE / "fetch", ignore_errors=True)
    packages = fetched()
    for name in ["parking_lot_tests", *DEPENDENTS]:
        shutil.rmtree(PLACE / name, ignore_errors=True)
    features = [feature for name in DEPENDENTS for feature in copy_dependent(name, packages[name])]
    if copy_own_tests(packages["parking_lot"]) < 40:
        sys.exit("dependents: most of parking_lot's tests were not found")
    members = json.dumps(["parking_lot_tests", *DEPENDENTS])
    (PLACE / "Cargo.toml").write_text(
        f'[workspace]\nresolver = "2"\nmembers = {members}\n'
        f'[patch.crates-io]\nparking_lot = {{ path = "{OURS}" }}\n'
    )
    metadata = json.loads(
        cargo("metadata", "--format-version=1", folder=PLACE, stdout=subprocess.PIPE).stdout
    )
    used = [
        package["manifest_path"]
        for package in metadata["packages"]
        if package["name"] == "parking_lot" and package["version"].startswith("0.12.")
    ]
    if used != [str(OURS / "Cargo.toml")]:
        sys.exit(f"dependents: the crates would use {used}")
    # Less debug information makes for half of the build.
    environment = os.environ | {
        "CARGO_TARGET_DIR": str(PLACE / "target"),
        "CARGO_PROFILE_DEV_DEBUG": "0",
    }
    return subprocess.run(
        [
            "cargo",
            "test",
            "--workspace",
            "--lib",
            "--tests",
            "--no-fail-fast",
            "--features",
            ",".join(features),
            *arguments,
        ],
        cwd=PLACE,
        env=environment,
    ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
