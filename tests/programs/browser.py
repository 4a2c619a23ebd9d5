#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Firefox or Chromium (argv[1]), headless and sandboxed: the DOM of a local page and a screenshot.

A server on the loopback interface serves the page, whose content a script makes: it fetches a
number, shows its square, sets the page's colour, and posts its DOM back. Chromium refuses to be
sandboxed as root, so it runs as nobody.
"""

import http.server
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from processes import descendants

COLOUR = bytes((18, 52, 86))
NUMBER = 1234
SHOWN = f'<p id="shown">{NUMBER * NUMBER}</p>'
WIDTH, HEIGHT = 320, 240
PICTURE = "picture.png"
SECONDS = 500  # a bound on hangs of one run

PAGE = f"""<!doctype html><title>page</title><body><p id="shown">nothing</p><script>
function get(path, body) {{
  const request = new XMLHttpRequest();
  request.open(body ? "POST" : "GET", path, false);
  request.send(body);
  return request.responseText;
}}
const number = Number(get("/number"));
document.getElementById("shown").textContent = number * number;
document.body.style.background = "rgb({COLOUR[0]}, {COLOUR[1]}, {COLOUR[2]})";
get("/dom", document.documentElement.outerHTML);
</script></body>"""

doms = []  # posted DOMs, each with whether a process was under a seccomp filter at that time


def is_filtered(pid):
    try:
        return (
            re.search(r"^Seccomp:\t2$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
            is not None
        )
    except OSError:
        return False


class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, text, kind="text/plain"):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_GET(self):
        if self.path == "/page":
            self.answer(PAGE, "text/html")
        elif self.path == "/number":
            self.answer(str(NUMBER))
        else:
            self.send_error(404)

    def do_POST(self):
        dom = self.rfile.read(int(self.headers["Content-Length"])).decode()
        doms.append((dom, any(map(is_filtered, descendants(os.getpid())))))
        self.answer("")

    def log_message(self, *_):
        pass


def firefox(home):
    """The commands that open a page and save its picture, and that print its DOM if the browser
    can."""
    os.mkdir(f"{home}/profile")
    command = ["firefox-esr", "--headless", "--no-remote", "--profile", f"{home}/profile"]
    return [*command, f"--window-size={WIDTH},{HEIGHT}", "--screenshot", f"{home}/{PICTURE}"], None


def chromium(home):
    """As firefox()."""
    command = []
    if os.getuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.chown(home, nobody.pw_uid, nobody.pw_gid)
        command = [
            "setpriv",
            f"--reuid={nobody.pw_uid}",
            f"--regid={nobody.pw_gid}",
            "--clear-groups",
        ]
    quiet = ["gpu", "quic", "background-networking", "component-update", "sync"]
    quiet = [f"--disable-{what}" for what in quiet]
    command += [
        "chromium",
        "--headless",
        "--no-first-run",
        f"--user-data-dir={home}/profile",
        *quiet,
    ]
    return [*command, f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={home}/{PICTURE}"], [
        *command,
        "--dump-dom",
    ]


def preloaded(home):
    """Copies of the preloaded libraries in @home, since the user nobody may not read this tree."""
    libraries = os.environ.get("LD_PRELOAD", "").split(":")
    return ":".join(shutil.copy(library, home) for library in libraries if library)


def run(command, home):
    """The output of @command, which must succeed."""
    environment = {
        **os.environ,
        "HOME": home,
        "XDG_RUNTIME_DIR": home,
        "MOZ_CRASHREPORTER_DISABLE": "1",
    }
    done = subprocess.run(
        command, cwd=home, env=environment, stdout=subprocess.PIPE, timeout=SECONDS, text=True
    )
    if done.returncode:
        sys.exit(f"{command[0]} ended with {done.returncode}")
    return done.stdout


def pixel(picture):
    """The colour in the middle of the lower half of @picture, where the page has no text."""
    where = f"crop=1:1:{WIDTH // 2}:{HEIGHT * 3 // 4}"
    command = [
        "ffmpeg",
        "-nostdin",
        "-loglevel",
        "error",
        "-i",
        picture,
        "-vf",
        where,
        "-f",
        "rawvideo",
    ]
    return subprocess.run(
        [*command, "-pix_fmt", "rgb24", "-"], stdout=subprocess.PIPE, check=True
    ).stdout


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    page = f"http://127.0.0.1:{server.server_port}/page"
    home = tempfile.mkdtemp(prefix="poundlock-")
    try:
        os.environ["LD_PRELOAD"] = preloaded(home)
        draw, dump = {"firefox": firefox, "chromium": chromium}[sys.argv[1]](home)
        run([*draw, page], home)
        colour = pixel(f"{home}/{PICTURE}")
        if dump and SHOWN not in run([*dump, page], home):
            sys.exit("the DOM that was dumped is not the page's")
    finally:
        shutil.rmtree(home, ignore_errors=True)
    if not doms or not all(SHOWN in dom for dom, _ in doms):
        sys.exit(f"the page's DOM was {doms}")
    if not all(filtered for _, filtered in doms):
        sys.exit("no process of the browser was in a sandbox")
    if colour != COLOUR:
        sys.exit(f"the screenshot shows {colour.hex()} instead of {COLOUR.hex()}")
    print(f"checked: {len(doms)} pages and their screenshot")


main()
