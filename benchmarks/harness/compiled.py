"""Compiles what a benchmark's program needs of C, for this interpreter."""

import subprocess
import sysconfig
from pathlib import Path

from harness.errors import BenchmarkError


def compiled(source: Path, folder: Path) -> Path:
    """The folder, with the module of that name in it.

    Errors:
        BenchmarkError: there is no compiler, or it does not take the source.
    """
    module = folder / f"{source.stem}{sysconfig.get_config_var('EXT_SUFFIX')}"
    include = sysconfig.get_path("include")
    command = ["cc", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", f"-I{include}", str(source), "-o", str(module)]
    try:
        subprocess.run(command, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise BenchmarkError(f"{source.name} could not be compiled ({error}): the benchmark needs cc") from None
    return folder
