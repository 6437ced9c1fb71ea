"""Runs a command in which some system calls fail with EPERM, as in a container: forbid.py NUMBER[,NUMBER...] COMMAND."""

import ctypes
import os
import struct
import sys

ALLOW, ERRNO_EPERM = 0x7FFF0000, 0x00050001
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP = 38, 22

libc = ctypes.CDLL(None, use_errno=True)
program = struct.pack("HBBI", 0x20, 0, 0, 0)  # the number
for number in sys.argv[1].split(","):
    program += struct.pack("HBBI", 0x15, 0, 1, int(number)) + struct.pack("HBBI", 0x06, 0, 0, ERRNO_EPERM)
program += struct.pack("HBBI", 0x06, 0, 0, ALLOW)
buffer = ctypes.create_string_buffer(program)
filter_ = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(buffer)))
assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
assert libc.prctl(PR_SET_SECCOMP, 2, filter_, 0, 0) == 0
os.execvp(sys.argv[2], sys.argv[2:])
