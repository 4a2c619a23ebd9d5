# SPDX-License-Identifier: MIT OR Apache-2.0
"""A guest's root file system: busybox, the parts, and the programs that its cases need."""

import gzip
import os
import re
import shutil
import subprocess
from pathlib import Path

import own
from parts import BPF_SERIES, BUILD, HERE, ROOT, output

BPFTOOL = Path("/usr/sbin/bpftool")
OWNERS = HERE / "guest/owners.py"

# For kernel/bench.py in a guest.
PYTHON = "python3.11"
MEASURING = {
    "kernel/bench.py": HERE / "bench.py",
    "bench/command_line.py": ROOT / "bench/command_line.py",
    "bench/ratios.py": ROOT / "bench/ratios.py",
}


def with_libraries(program):
    """The file @program, and its libraries."""
    return [program, *map(Path, re.findall(r"(/\S+) \(0x", output(["ldd", program])))]


def lay(folder, files):
    """Copies @files into the guest's @folder."""
    for place, file in files.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, folder / place)


def drgn_files():
    """drgn with its libraries, from Debian's package."""
    paths = [Path(path) for path in output(["dpkg-query", "-L", "python3-drgn"]).splitlines()]
    (library,) = (path for path in paths if path.suffix == ".so")
    return [*with_libraries(library), *(path for path in paths if path.suffix == ".py")]


def python_files():
    """The interpreter, its libraries and its modules, from Debian's packages."""
    packages = [f"lib{PYTHON}-minimal", f"lib{PYTHON}-stdlib"]
    modules = output(["dpkg-query", "-L", *packages]).splitlines()
    return [
        *with_libraries(Path("/usr/bin") / PYTHON),
        *(Path(path) for path in modules if path.endswith((".py", ".so")) and "/lib/" in path),
    ]


def lay_python(folder, files):
    """Copies Python and @files into the guest's @folder."""
    lay(folder, {path.relative_to("/"): path for path in python_files()} | files)
    (folder / "bin/python3").symlink_to(f"/usr/bin/{PYTHON}")


def lay_root(guest, parts, folder):
    """Makes @folder the guest's root: busybox, the modules and programs in @parts, and the guest's
    commands."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "bin").mkdir(parents=True)
    shutil.copy("/bin/busybox", folder / "bin/busybox")
    for part in parts:
        shutil.copy(part, folder)
    shutil.copy(HERE / "guest/init", folder / "init")
    if guest.measures:
        lay_python(folder, {Path("poundlock") / place: file for place, file in MEASURING.items()})
    if guest.debugs:
        vmlinux = own.configuration("bpf", BPF_SERIES)[1] / "vmlinux"
        files = {path.relative_to("/"): path for path in drgn_files()}
        lay_python(folder, files | {OWNERS.name: OWNERS, vmlinux.name: vmlinux})
    if guest.profiles:
        perf, *libraries = with_libraries(own.perf(BPF_SERIES))
        lay(folder, {"bin/perf": perf} | {path.relative_to("/"): path for path in libraries})
    if guest.loads:
        shutil.copy(HERE / "guest/watchdog", folder)
        lay(folder, {path.relative_to("/"): path for path in with_libraries(BPFTOOL)})
    (folder / "runs").write_text("".join(f"{case.line}\n" for case in guest.cases))


def initramfs(guest, parts):
    """The initial file system, which is the guest's root."""
    folder = BUILD / f"guest-{guest.name}"
    lay_root(guest, parts, folder)
    # The same parts make the same archive: no time stamps or inode numbers of the host.
    paths = sorted(folder.rglob("*"))
    for path in paths:
        os.utime(path, (0, 0), follow_symlinks=False)
    names = "".join(f"{path.relative_to(folder)}\n" for path in paths)
    packed = subprocess.run(
        ["cpio", "-o", "-H", "newc", "--quiet", "--reproducible"],
        cwd=folder,
        input=names.encode(),
        check=True,
        stdout=subprocess.PIPE,
    ).stdout
    archive = folder.with_name(f"{folder.name}.cpio.gz")
    archive.write_bytes(gzip.compress(packed, 1, mtime=0))
    return archive
