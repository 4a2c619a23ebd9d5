# SPDX-License-Identifier: MIT OR Apache-2.0
"""Installs the packages of deb.py in a minimal Debian, boots it, and removes them.

Debian's userland, with its own initramfs-tools and its own kernel, is made by debootstrap once, and
kept in build/kernel. The packages are installed there by dpkg. A guest boots the installed kernel
and initrd with ShflLocks and CNA, and runs the commands of guest/init, with the module
poundlock_torture that is built against the headers' package. After `dpkg --purge` no file may be
left, and the guest boots Debian's kernel.
"""

import os
import shutil
import subprocess
from pathlib import Path

import own
from cases import INTERRUPTED, SHARED, Case, Guest, is_sound, within
from guests import files
from machine import run_guest
from parts import build_programs
from report import checked_module, judge_guest
from root import lay_root

PACKAGES = ["debootstrap", "e2fsprogs", "qemu-system-x86", "busybox-static", "sparse", "gcc"]
RELEASE = "bookworm"
# Debian's own kernel is what remains when ours is removed.
INCLUDED = ["systemd-sysv", "udev", "kmod", "initramfs-tools", "linux-image-cloud-amd64"]
# Folders in which dpkg, apt and others keep records that outlive a package.
RECORDS = ["var/lib/dpkg", "var/lib/apt", "var/cache", "var/log"]
CHOICES = {"spin": "cna", "mutex": "shfl", "rwsem": "shfl"}
SIZE = "3G"  # of the root file system
LIMIT = 1800  # seconds, for what takes a minute

UNIT = """\
[Unit]
Description=Test of Poundlock's locks
After=systemd-udevd.service

[Service]
Type=oneshot
ExecStart=/poundlock-test
StandardOutput=tty
TTYPath=/dev/ttyS0
"""


# ---- Debian's userland ----


def run(*command):
    """Runs @command. A failure's exception has the end of its output."""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=LIMIT,
    )
    if done.returncode:
        end = "\n".join(done.stdout.splitlines()[-20:])
        raise own.Failure(f"{' '.join(map(str, command[:3]))} fails:\n{end}")


def mirror():
    """The mirror that apt uses for Debian's RELEASE."""
    wanted = ["Created-By: Packages", f"Codename: {RELEASE}", "Origin: Debian"]
    found = own.output("apt-get", "indextargets", "--format", "$(REPO_URI)", *wanted).split()
    if not found:
        raise own.Failure(f"apt has no mirror of Debian's {RELEASE}")
    return found[0]


def userland():
    """An archive of Debian's userland, which is made once."""
    archive = own.cache() / f"userland-{RELEASE}.tar"
    if not archive.exists():
        print(f"     {archive} is made by debootstrap", flush=True)
        root, part = archive.with_suffix(".root"), archive.with_suffix(".part")
        shutil.rmtree(root, ignore_errors=True)
        root.parent.mkdir(parents=True, exist_ok=True)
        include = ",".join(INCLUDED)
        run("debootstrap", "--variant=minbase", f"--include={include}", RELEASE, root, mirror())
        run("tar", "-C", root, "--exclude=./var/cache/apt/archives/*.deb", "-cf", part, ".")
        shutil.rmtree(root)
        part.rename(archive)
    return archive


class Userland:
    """A fresh copy of Debian's userland in @root, whose service is guest/installed."""

    def __init__(self, root):
        self.root = root
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        run("tar", "-C", root, "-xf", userland())
        shutil.copy(own.HERE / "guest/installed", root / "poundlock-test")
        units = root / "etc/systemd/system"
        (units / "poundlock-test.service").write_text(UNIT)
        wants = units / "multi-user.target.wants"
        wants.mkdir(exist_ok=True)
        (wants / "poundlock-test.service").symlink_to("../poundlock-test.service")
        # The console is the service's alone.
        (units / "serial-getty@ttyS0.service").symlink_to("/dev/null")

    def inside(self, *command):
        """Runs @command in the userland, with /proc, which its mounts do not outlive."""
        shell = 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'
        run("unshare", "--mount", "--pid", "--fork", "sh", "-ec", shell, self.root, *command)

    def files(self):
        """All files but the records of package managers."""
        return {
            str(path.relative_to(self.root))
            for path in self.root.rglob("*")
            if not str(path.relative_to(self.root)).startswith(tuple(RECORDS))
        }

    def disk(self):
        """A new image of a file system with the userland's files."""
        image = self.root.with_suffix(".img")
        image.unlink(missing_ok=True)
        run("mke2fs", "-q", "-t", "ext4", "-d", self.root, image, SIZE)
        return image

    def kernels(self):
        """The releases of the installed kernels."""
        return {path.name.removeprefix("vmlinuz-") for path in self.root.glob("boot/vmlinuz-*")}

    def boot(self, guest, release):
        """Boots @guest with the kernel and initrd of @release: the console's lines, and a complaint
        if it did not end well."""
        boot = self.root / "boot"
        guest.disk = self.disk()
        guest.boot = "root=/dev/vda rw"
        return run_guest(guest, boot / f"vmlinuz-{release}", boot / f"initrd.img-{release}")


# ---- Cases ----


def cases():
    """Torture of all kinds of locks, the load on files and memory, and changes of lock and policy
    during torture."""
    return [
        Case("native count=500", is_sound),
        Case("native:mutex count=100 threads=16", INTERRUPTED),
        Case("native:rwsem count=100 threads=16", SHARED),
        *files(8, 10),
        Case("native count=500", within("switches", 5, 5), "beside switches 1"),
        Case("native count=500", within("retunes", 48, 48), "beside retunes 1"),
    ]


def only_package(folder, name):
    """The only package in @folder whose name begins with @name."""
    found = [file for file in folder.glob(f"{name}-*.deb") if "-dbg_" not in file.name]
    if len(found) != 1:
        raise own.Failure(f"{folder} should have one package {name}-*, and has {len(found)}")
    return found[0]


def marked(lines, mark):
    """The rest of the guest's first line with @mark."""
    found = [line for line in lines if line.startswith(f"@@ {mark} ")]
    return found[0].removeprefix(f"@@ {mark} ") if found else "nothing"


def same(wanted, found):
    return "" if wanted == found else f"{found}, and should be {wanted}"


def built_module(headers, release, count):
    """The torture's module, built against the package @headers as an administrator would."""
    tree = own.cache() / "deb-headers"
    shutil.rmtree(tree, ignore_errors=True)
    run("dpkg-deb", "-x", headers, tree)
    source = tree / f"usr/src/linux-headers-{release}"
    return checked_module(Path(f"vmlinuz-{release}"), source, count)


def check_boot(system, release, module, count):
    guest = Guest("deb", 4, 2, "single", cases(), CHOICES)
    lay_root(guest, [module, *build_programs()], system.root / "poundlock")
    lines, wrong = system.boot(guest, release)
    count.case("deb: the kernel is the package's", same(release, marked(lines, "release")))
    judge_guest(guest, lines, wrong, count)
    shutil.rmtree(system.root / "poundlock")


def check_back(system, stock, count):
    """Boots what is left: Debian's kernel, which has none of our choices."""
    guest = Guest("deb-removed", 4, 2, "single")
    lines, wrong = system.boot(guest, stock)
    count.case("deb-removed: the kernel is Debian's", same(stock, marked(lines, "release")))
    count.case("deb-removed: it has no choices", same("none", marked(lines, "choices")))
    count.case("deb-removed: the guest ends", wrong)


def check(folder, count):
    """Tests the packages in @folder."""
    if os.geteuid():
        raise own.Failure("only root can make a userland of Debian")
    image, headers = [only_package(folder, f"linux-{name}") for name in ("image", "headers")]
    own.check_installed(PACKAGES)
    with count.part("userland"):
        system = Userland(own.cache() / "userland")
    (stock,), before = system.kernels(), system.files()
    with count.part("installation"):
        for package in (image, headers):
            shutil.copy(package, system.root / "var/cache")
        system.inside("dpkg", "-i", *(f"/var/cache/{each.name}" for each in (image, headers)))
    (release,) = system.kernels() - {stock}
    initrd = system.root / f"boot/initrd.img-{release}"
    count.case("deb: Debian's initramfs is made", "" if initrd.exists() else "it is not")
    module = built_module(headers, release, count)
    with count.part("deb"):
        check_boot(system, release, module, count)
    with count.part("removal"):
        system.inside("dpkg", "--purge", f"linux-image-{release}", f"linux-headers-{release}")
    left = sorted(system.files() - before)
    count.case("deb: nothing is left when it is removed", " ".join(left[:10]))
    with count.part("deb-removed"):
        check_back(system, stock, count)
