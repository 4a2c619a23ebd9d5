# SPDX-License-Identifier: MIT OR Apache-2.0
"""Parts of the guests of the kernel's tests: Debian's kernel, the module, the load on files and
memory, and the policies as BPF programs."""

import os
import re
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
BUILD = ROOT / "build/kernel"

PACKAGES = [
    "linux-headers-amd64",
    "qemu-system-x86",
    "busybox-static",
    "sparse",
    "cpio",
    "make",
    "gcc",
]

STRESS = HERE / "guest/stress.c"
INTERRUPTED = HERE / "guest/interrupted.c"
# Policies as BPF programs: the examples, with the header of all, and those of the tests.
POLICIES = [HERE / "policies", HERE / "guest/policies"]
# The only series whose kernel has them.
BPF_SERIES = "6.12"

BUILD_LIMIT = 3600  # seconds: many times the duration on a busy machine


class Failure(Exception):
    """A prerequisite of every guest is missing; the text names it."""


def output(command, **more):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **more).stdout


def release():
    """The newest kernel whose headers are installed."""
    names = [
        path.name.removeprefix("linux-headers-")
        for path in Path("/usr/src").glob("linux-headers-*-amd64")
    ]
    if not names:
        raise Failure("no linux-headers-*-amd64 in /usr/src")
    return max(names, key=lambda name: [int(part) for part in re.findall(r"\d+", name)])


def kernel_image(name):
    """The kernel @name, from Debian's package, which is downloaded once and not installed."""
    image = BUILD / "images" / f"vmlinuz-{name}"
    if image.exists():
        return image
    image.parent.mkdir(parents=True, exist_ok=True)
    version = output(["dpkg-query", "-W", "-f", "${Version}", f"linux-headers-{name}"])
    scratch = image.parent / "package"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    try:
        subprocess.run(
            ["apt-get", "download", "-q", f"linux-image-{name}={version}"],
            cwd=scratch,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=BUILD_LIMIT,
        )
        subprocess.run(
            ["dpkg-deb", "-x", next(scratch.glob("*.deb")), scratch],
            check=True,
            timeout=BUILD_LIMIT,
        )
        shutil.copy(scratch / "boot" / image.name, image)
    except (subprocess.SubprocessError, StopIteration, OSError) as error:
        raise Failure(f"the package linux-image-{name} {version} cannot be had: {error}") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return image


def stage():
    """Copies the sources, since Kbuild writes objects beside them. Removes objects of another
    kernel, which would look up to date."""
    shutil.rmtree(BUILD / "module", ignore_errors=True)
    for part in "core", "kernel", "world/kernel":
        shutil.copytree(ROOT / part, BUILD / "module" / part)
    return BUILD / "module/kernel"


def build_module(tree, name="poundlock_torture", part="."):
    """Builds the module @name of kernel/@part for the kernel of @tree, with the same bytes from any
    folder. Returns it, and the warnings of the compiler and sparse."""
    folder = stage() / part
    make = [
        "make",
        "-C",
        str(tree),
        f"M={folder}",
        f"-j{os.cpu_count()}",
        f"KCFLAGS=-ffile-prefix-map={BUILD / 'module'}=.",
    ]
    made = subprocess.run(
        make + ["W=1", "C=1", "CF=-Wno-declaration-after-statement", "modules"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=BUILD_LIMIT,
    )
    if made.returncode:
        raise Failure(f"the module does not build:\n{made.stdout}")
    module = BUILD / f"{name}.ko"
    shutil.copy(folder / module.name, module)
    subprocess.run(["strip", "--strip-debug", module], check=True, timeout=BUILD_LIMIT)
    said = [line for line in made.stdout.splitlines() if re.search(r"\b(warning|error):", line)]
    return module, said


def locks():
    """The locks that the module must have: all of core/locks.def that it does not leave out."""
    names = re.findall(r"^LOCK\((\w+),", (ROOT / "core/locks.def").read_text(), re.MULTILINE)
    others = re.findall(r"^#define LEFT_OUT_(\w+)", (HERE / "spin.c").read_text(), re.MULTILINE)
    return [name for name in names if name not in others]


def build_program(source):
    """Builds a program of the guests."""
    program = BUILD / source.stem
    BUILD.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-pthread", "-o", program, source],
        check=True,
        timeout=BUILD_LIMIT,
    )
    return program


def build_programs():
    """Builds the load on files and memory, and the waits that are interrupted."""
    return [build_program(STRESS), build_program(INTERRUPTED)]


def build_policies():
    """Compiles the policies that are BPF programs: the examples, and those of the tests."""
    include, objects = f"-I/usr/include/{output(['gcc', '-print-multiarch']).strip()}", []
    for source in [file for folder in POLICIES for file in sorted(folder.glob("*.bpf.c"))]:
        objects.append(BUILD / source.with_suffix(".o").name)
        warnings = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"]
        command = ["clang", "-target", "bpf", "-mcpu=v3", "-O2", "-g", *warnings]
        subprocess.run(
            [*command, include, f"-I{POLICIES[0]}", "-c", source, "-o", objects[-1]],
            check=True,
            timeout=BUILD_LIMIT,
        )
    return objects
