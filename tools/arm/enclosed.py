"""Runs commands in a root, under emulation, with mounts that are there for them alone."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from .root import BUILD, CHECKOUT, HOST, INSIDE

FORMATS = Path("/proc/sys/fs/binfmt_misc")
NAME = "qemu-aarch64"
MAGIC = r"\x7f\x45\x4c\x46\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
MASK = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
# F: the emulator is opened now, so that it is found in a root; OC: programs of other users keep their rights.
FORMAT = f":{NAME}:M::{MAGIC}:{MASK}:/usr/bin/qemu-aarch64-static:OCF"

MOUNTS = f"""\
set -e
mount --make-rprivate /
mount -t proc proc "$1/proc"
mount --rbind /sys "$1/sys"
mount --rbind /dev "$1/dev"
mount -t tmpfs tmpfs "$1/dev/shm"
mount --bind -o ro / "$1{HOST}"
mount --bind "$2" "$1{INSIDE}"
mount --bind "$3" "$1{INSIDE}/build"
root=$1
shift 3
exec chroot "$root" /usr/bin/env -i "$@"
"""
"""Of a shell in a mount namespace of its own: they end with it. The checkout is INSIDE, but for build/."""


@contextmanager
def emulator() -> Iterator[None]:
    """The kernel runs aarch64's programs with qemu; afterwards no more, unless it did before."""
    mounted = registered = False
    if not (FORMATS / "register").exists():
        subprocess.run(["mount", "-t", "binfmt_misc", "binfmt_misc", str(FORMATS)], check=True)
        mounted = True
    if not (FORMATS / NAME).exists():
        (FORMATS / "register").write_text(FORMAT)
        registered = True
    try:
        yield
    finally:
        with suppress(OSError):
            if registered:
                (FORMATS / NAME).write_text("-1")
        if mounted:
            subprocess.run(["umount", str(FORMATS)], check=False)


def command(root: Path, version: str, words: Sequence[str], **variables: str) -> list[str]:
    """The command that runs another one in a root, in its checkout."""
    build = BUILD / f"tests-{version}"
    build.mkdir(parents=True, exist_ok=True)
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        "HOME": "/root",
        "LANG": "C.UTF-8",
        "CXX": "c++",
        "PYTHONPYCACHEPREFIX": "/var/cache/python",
        **variables,
    }
    assigned = [f"{name}={value}" for name, value in environment.items()]
    return [
        *("nice", "-n", "5", "unshare", "--mount", "--kill-child", "sh", "-c", MOUNTS, "sh"),
        *(str(root), str(CHECKOUT), str(build)),
        *assigned,
        *("sh", "-c", f'cd {INSIDE} && exec "$@"', "sh", *words),
    ]
