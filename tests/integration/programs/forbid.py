"""Runs a command in which system calls are refused with EPERM: ``forbid.py NUMBER[,NUMBER...] COMMAND...`` (x86-64)."""

import ctypes
import os
import struct
import sys

SECCOMP, FILTER, NO_NEW_PRIVILEGES = 22, 2, 38
LOAD_NUMBER, IF_EQUAL, ANSWER = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | 1

rules = [(LOAD_NUMBER, 0, 0, 0)]
for number in map(int, sys.argv[1].split(",")):
    rules += [(IF_EQUAL, 0, 1, number), (ANSWER, 0, 0, REFUSE)]
rules += [(ANSWER, 0, 0, ALLOW)]
code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *rule) for rule in rules))
program = ctypes.create_string_buffer(struct.pack("@HP", len(rules), ctypes.addressof(code)))
prctl = ctypes.CDLL(None, use_errno=True).prctl
for arguments in ((NO_NEW_PRIVILEGES, 1, 0, 0, 0), (SECCOMP, FILTER, ctypes.c_void_p(ctypes.addressof(program)), 0, 0)):
    if prctl(*arguments) != 0:
        sys.exit(os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[2], sys.argv[2:])
