"""Runs a command under one of the restrictions that containers have: ``restricted.py NAME COMMAND...`` (x86-64).

``restricted.py --list`` prints the names. The exit status is 99 where this machine does not let us restrict so.
"""

import ctypes
import errno
import os
import resource
import struct
import sys
import time
from collections.abc import Callable, Iterable

IMPOSSIBLE = 99
LIBC = ctypes.CDLL(None, use_errno=True)
LOAD, IF_EQUAL, IF_ANY_BIT, ANSWER = 0x20, 0x15, 0x45, 0x06
NUMBER, FIRST_ARGUMENT, SECOND_ARGUMENT = 0, 16, 24
ALLOW, REFUSE = 0x7FFF0000, 0x00050000
NEW_NAMESPACES, NEW_MOUNTS, NEW_PIDS = 0x7E020000, 0x00020000, 0x20000000
READ_ONLY, REMOUNT, BIND, RECURSIVE, PRIVATE = 0x1, 0x20, 0x1000, 0x4000, 0x40000
IOCTL, CLONE, CLONE3 = 16, 56, 435
PAGEMAP_SCAN = 0xC0606610
"""Of ioctl, since Linux 6.7."""
MEMORY, PROCESSES = str(200 << 20), "60"
"""Limits of control groups, in which the recording command is as well."""

# "Significant syscalls blocked by the default profile" of Docker's documentation, and io_uring, which it blocks since
# version 25; process_vm_readv and its kin are refused where a kernel is older than 4.8.
DOCKER = """134 135 136 139 155 156 163 164 165 166 167 168 169 172 173 174 175 176 177 178 179 180 212 227 237 238 239
246 248 249 250 272 279 298 303 304 305 308 310 311 312 313 320 321 323 425 426 427"""
TRACING = "101 310 311 312 438"
NEW_CALLS = "332 334 434 435 436 437 439 448"
"""statx, rseq, pidfd_open, clone3, close_range, openat2, faccessat2, process_mrelease: not in old kernels."""


def check(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def refuse(numbers: Iterable[str], error: int, *, namespaces: bool = False, scans: bool = False) -> None:
    """System calls that fail from now on; with `namespaces` those that make some, and clone3, too; `scans` of pages."""
    rules = [(LOAD, 0, 0, NUMBER)]
    for number in map(int, numbers):
        rules += [(IF_EQUAL, 0, 1, number), (ANSWER, 0, 0, REFUSE | error)]
    if namespaces:
        rules += [(IF_EQUAL, 0, 1, CLONE3), (ANSWER, 0, 0, REFUSE | errno.ENOSYS), (IF_EQUAL, 0, 3, CLONE)]
        rules += [(LOAD, 0, 0, FIRST_ARGUMENT), (IF_ANY_BIT, 0, 1, NEW_NAMESPACES), (ANSWER, 0, 0, REFUSE | error)]
    if scans:
        rules += [(IF_EQUAL, 0, 3, IOCTL), (LOAD, 0, 0, SECOND_ARGUMENT), (IF_EQUAL, 0, 1, PAGEMAP_SCAN)]
        rules += [(ANSWER, 0, 0, REFUSE | errno.ENOTTY)]
    rules += [(ANSWER, 0, 0, ALLOW)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *rule) for rule in rules))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(rules), ctypes.addressof(code)))
    check(LIBC.prctl(38, 1, 0, 0, 0))  # PR_SET_NO_NEW_PRIVS
    check(LIBC.prctl(22, 2, ctypes.c_void_p(ctypes.addressof(program)), 0, 0))  # PR_SET_SECCOMP, a filter


def mount(kind: str | None, place: str, flags: int, data: str | None = None) -> None:
    words = [word.encode() if word is not None else None for word in (kind or place, place, kind, data)]
    check(LIBC.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), words[3]))


def own_mounts() -> None:
    check(LIBC.unshare(NEW_MOUNTS))
    mount(None, "/", RECURSIVE | PRIVATE)


def read_only_root() -> None:
    """All but the working folder, /dev and /proc; there is no other place for temporary files."""
    own_mounts()
    folder = os.getcwd()  # noqa: PTH109
    mount(None, folder, BIND)
    for place in ("/", *(place for place in ("/tmp", "/var/tmp", "/dev/shm") if os.path.ismount(place))):  # noqa: S108
        mount(None, place, REMOUNT | BIND | READ_ONLY)
    os.chdir(folder)
    os.environ["TMPDIR"] = folder


def shared_memory(size: str) -> None:
    own_mounts()
    mount("tmpfs", "/dev/shm", 0, f"size={size}")  # noqa: S108


def few_processes() -> None:
    """A limit of process ids, as a container's: in a name space of their own, since Linux 6.14."""
    check(LIBC.unshare(NEW_PIDS | NEW_MOUNTS))
    child = os.fork()
    if child:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os._exit(status if status >= 0 else 128 - status)
    mount(None, "/", RECURSIVE | PRIVATE)
    mount("proc", "/proc", 0)
    with open("/proc/sys/kernel/pid_max", "w", encoding="ascii") as file:
        file.write("320")


def control_group(controller: str) -> tuple[str, int]:
    """The folder of the control group that we are in and that has this controller, and its version."""
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        groups = [line.rstrip("\n").split(":", 2) for line in file]
    for _, controllers, path in groups:
        if controller in controllers.split(","):
            return f"/sys/fs/cgroup/{controllers}{path}", 1
    path = next((path for number, _, path in groups if number == "0"), "/")
    return f"/sys/fs/cgroup{path}", 2


def write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def limited_group(controller: str, *limits: tuple[str, str]) -> None:
    """Goes on in a control group of its own with one of these limits, the first one for version 1; it is removed."""
    above, version = control_group(controller)
    if version == 2:
        write(f"{above}/cgroup.subtree_control", f"+{controller}")
    group = f"{above}/tachograph-test-{os.getpid()}"
    os.mkdir(group)
    try:
        write(f"{group}/{limits[version - 1][0]}", limits[version - 1][1])
    except OSError:
        os.rmdir(group)
        raise
    child = os.fork()
    if child == 0:
        write(f"{group}/cgroup.procs", str(os.getpid()))
        return
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    while True:
        try:
            os.rmdir(group)
            break
        except OSError as error:  # processes of the program that are about to end
            if error.errno != errno.EBUSY:
                raise
            time.sleep(0.05)
    os._exit(status if status >= 0 else 128 - status)


def limit(kind: int, value: int) -> None:
    resource.setrlimit(kind, (value, value))


RESTRICTIONS: dict[str, Callable[[], None]] = {
    "docker": lambda: refuse(DOCKER.split(), errno.EPERM, namespaces=True),
    "no-ptrace": lambda: refuse(TRACING.split(), errno.EPERM),
    "old-kernel": lambda: refuse(NEW_CALLS.split(), errno.ENOSYS, scans=True),
    "read-only-root": read_only_root,
    "small-shm": lambda: shared_memory("64k"),
    "address-space": lambda: limit(resource.RLIMIT_AS, 700 << 20),
    "open-files": lambda: limit(resource.RLIMIT_NOFILE, 32),
    "file-size": lambda: limit(resource.RLIMIT_FSIZE, 4 << 20),
    "process-ids": few_processes,
    "memory-group": lambda: limited_group("memory", ("memory.limit_in_bytes", MEMORY), ("memory.max", MEMORY)),
    "process-group": lambda: limited_group("pids", ("pids.max", PROCESSES), ("pids.max", PROCESSES)),
}


def main() -> None:
    if sys.argv[1] == "--list":
        print(*RESTRICTIONS)
        return
    try:
        RESTRICTIONS[sys.argv[1]]()
    except OSError as error:
        print(f"this machine does not restrict so: {error}", file=sys.stderr)
        sys.exit(IMPOSSIBLE)
    os.execvp(sys.argv[2], sys.argv[2:])


main()
