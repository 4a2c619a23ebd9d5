#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""tls.py LIBRARY MOST: fails if the shared library (64-bit ELF) has more than MOST bytes of thread-
local storage. All of it is static, of which the C library reserves little for libraries that are
loaded late: 1,664 bytes by default, for all of them together."""

import struct
import sys

PT_TLS = 7


def tls_bytes(library):
    headers, entry, count = (
        *struct.unpack_from("<Q", library, 32),
        *struct.unpack_from("<HH", library, 54),
    )
    for at in range(headers, headers + entry * count, entry):
        if struct.unpack_from("<I", library, at)[0] == PT_TLS:
            return struct.unpack_from("<Q", library, at + 40)[0]
    raise SystemExit("tls.py: no thread-local storage at all: not a library of ours")


def main():
    path, most = sys.argv[1], int(sys.argv[2])
    with open(path, "rb") as file:
        size = tls_bytes(file.read())
    if size > most:
        raise SystemExit(
            f"tls.py: {path} has {size} bytes of thread-local storage, more than {most}"
        )


main()
