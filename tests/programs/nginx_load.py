# SPDX-License-Identifier: MIT OR Apache-2.0
"""nginx that reads files in a thread pool, and clients that compare every byte it sends."""

import os
import random
import socket
import threading

from client import Wrong

CLIENTS = 16
FILES = 20
BATCH = 4  # requests of a client before it reads the answers

CONFIGURATION = """
daemon off;
{user}
pid {directory}/pid;
error_log stderr error;
worker_processes 2;
thread_pool pool threads=8;
events {{ worker_connections 64; }}
http {{
    access_log off;
    sendfile off;
    output_buffers 1 8k;
    aio threads=pool;
    keepalive_requests 1000000;
    server {{
        listen unix:{directory}/socket;
        root {directory}/files;
    }}
}}
"""


def content(index):
    """The content of file @index: all differ, and none is periodic."""
    return random.Random(index).randbytes(10000 * (index + 1))


def command(directory):
    return ["nginx", "-p", directory, "-e", "stderr", "-c", f"{directory}/nginx.conf"]


def prepare(directory):
    os.mkdir(f"{directory}/files")
    for index in range(FILES):
        with open(f"{directory}/files/{index}", "wb") as file:
            file.write(content(index))
    with open(f"{directory}/nginx.conf", "w") as file:
        file.write(
            CONFIGURATION.format(directory=directory, user="" if os.getuid() else "user root root;")
        )


def answer(stream):
    """The body of the next answer."""
    status = stream.readline()
    if b" 200 " not in status:
        raise Wrong(f"nginx answered {status!r}")
    length = 0
    while (header := stream.readline().strip()) != b"":
        name, _, value = header.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return stream.read(length)


def ask(path, requests, contents, seed):
    """One client's connection, which requests files in a random order."""
    order = random.Random(seed)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(60)
        connection.connect(path)
        stream = connection.makefile("rb")
        for _ in range(requests // BATCH):
            files = [order.randrange(FILES) for _ in range(BATCH)]
            connection.sendall(
                b"".join(b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n" % file for file in files)
            )
            for file in files:
                if answer(stream) != contents[file]:
                    raise Wrong(f"nginx sent something else than file {file}")


def load(path, requests):
    contents = [content(index) for index in range(FILES)]
    wrongs = []

    def client(seed):
        try:
            ask(path, requests // CLIENTS, contents, seed)
        except (Wrong, OSError) as wrong:
            wrongs.append(wrong)

    threads = [threading.Thread(target=client, args=(seed,)) for seed in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrongs:
        raise Wrong(str(wrongs[0]))
