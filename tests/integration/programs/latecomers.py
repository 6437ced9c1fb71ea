"""Starts interpreters in which tachograph.pth does not run. Argument: a folder with another virtual environment."""

import subprocess
import sys
from pathlib import Path

WORK = str(Path(__file__).with_name("work.py"))
IN_A_MODULE = "import sys; sys.path.append(sys.argv[1]); from work import work; work('with_code')"
SAY = (
    "import sys; modules = sorted(name for name in sys.modules if name.partition('.')[0] != 'tachograph');"
    "import json, os, threading;"
    "print(json.dumps({'name': 'state', 'pid': os.getpid(), 'path': sys.path, 'argv': sys.argv, 'flags': str(sys.flags),"
    " 'modules': modules,"
    " 'main': sorted(vars(sys.modules['__main__'])), 'hooks': [sys.gettrace(), sys.getprofile(), len(sys.meta_path)],"
    " 'writes': sys.dont_write_bytecode, 'threads': threading.active_count(), 'environment': None}))"
)


def run(*command: str) -> None:
    subprocess.run(command, check=True)


def main(other: str) -> None:
    run(sys.executable, "-S", WORK, "without_site")
    run(sys.executable, "-I", "-S", WORK, "isolated_without_site")
    run(sys.executable, "-S", "-X", "dev", WORK, "with_debug_allocators")
    run(sys.executable, "-S", "-c", IN_A_MODULE, str(Path(WORK).parent))
    subprocess.run([sys.executable, "-S", "-m", "work", "with_module"], check=True, cwd=str(Path(WORK).parent))
    run(sys.executable, "-S", "-c", "pass")
    run(sys.executable, "-S", "-c", SAY)
    run(f"{other}/bin/python", WORK, "in_another_environment")
    run(f"{other}/bin/python", "-c", SAY)


if __name__ == "__main__":
    main(sys.argv[1])
