# SPDX-License-Identifier: MIT OR Apache-2.0
"""Downloads Debian's packages of other releases than the installed one, and unpacks them without
installing them. apt checks the signatures."""

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
LIMIT = 300  # seconds, for downloads


class Failure(Exception):
    """A package is not available; the text says why."""


def output(what, *command):
    """The output of @command, which is to provide @what."""
    try:
        done = subprocess.run(
            command,
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=LIMIT,
        )
    except subprocess.SubprocessError as error:
        errors = re.findall(r"(?m)^E: (.*)$", getattr(error, "stderr", "") or "")
        raise Failure(f"{what} cannot be had: {errors[0] if errors else error}") from error
    return done.stdout


def codename():
    """The name of the installed Debian."""
    release = dict(
        line.split("=", 1)
        for line in Path("/etc/os-release").read_text().splitlines()
        if "=" in line
    )
    return release.get("VERSION_CODENAME", "").strip('"')


def on_mirror(what, suite):
    """The apt line of @suite, which has @what, on the mirror of the installed packages."""
    known = output(
        what,
        "apt-get",
        "indextargets",
        "--format",
        "$(IDENTIFIER) $(CODENAME) $(ORIGIN) $(REPO_URI)",
    )
    for line in known.splitlines():
        *found, place = line.split(" ")
        if found == ["Packages", codename(), "Debian"]:
            return f"deb [signed-by={KEYS}] {place} {suite} main\n"
    raise Failure(f"{what} cannot be had: apt knows no Debian of the name '{codename()}'")


def sum_of(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


def unpack(what, folder, source, packages, sums=()):
    """Unpacks @packages of the apt line @source in @folder/root. @sums: the SHA256 that must be
    among those of the packages."""
    shutil.rmtree(folder, ignore_errors=True)
    place = folder / "packages"
    for part in (place, folder / "lists/partial"):
        part.mkdir(parents=True)
    (folder / "sources.list").write_text(source)
    apt = [
        "apt-get",
        "-q",
        "-o",
        f"Dir::Etc::sourcelist={folder}/sources.list",
        "-o",
        "Dir::Etc::sourceparts=/dev/null",
        "-o",
        f"Dir::State::lists={folder}/lists",
        "-o",
        "APT::Sandbox::User=root",
    ]
    output(what, *apt, "update", "--error-on=any")
    for package in packages:
        output(what, "env", "-C", place, *apt, "download", package)
    files = list(place.glob("*.deb"))
    if lacking := set(sums) - {sum_of(file) for file in files}:
        raise Failure(f"{what} cannot be had: no package has the SHA256 {min(lacking)}")
    unpacked = folder / "unpacked"
    for file in files:
        output(what, "dpkg-deb", "-x", file, unpacked)
    for done in (place, folder / "lists"):
        shutil.rmtree(done)
    unpacked.rename(folder / "root")
