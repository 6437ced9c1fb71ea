"""Compiles the C++ tests together with the shim's own sources, once for each set of sanitizers."""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import os
import platform
import re
import shutil
import subprocess
import sysconfig
import tarfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NATIVE = ROOT / "native"
HERE = Path(__file__).parent
CACHE = ROOT / "build" / "native-tests"
"""Objects by the digest of all that went into them; ``make clean`` takes them away."""

WARNINGS = ("-Wall", "-Wextra", "-Werror")
HIDDEN = ("-g1", "-fPIC", "-fvisibility=hidden")
SHIM_FLAGS = ("-std=c++20", *HIDDEN, "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics", *WARNINGS)
DECODER = CACHE / "zydis"
"""Where the archive of the decoder of instructions is unpacked, as cmake/Zydis.cmake does it for the build."""
DECODER_ARCHIVE = ROOT / "third_party" / "zydis" / "zydis-4.0.0.tar.gz"
DECODER_FLAGS = (
    *("-DZYDIS_STATIC_BUILD", "-DZYCORE_STATIC_BUILD", "-DZYDIS_DISABLE_ENCODER", "-DZYDIS_DISABLE_FORMATTER"),
    *("-DZYDIS_DISABLE_KNC", "-DZYDIS_DISABLE_SEGMENT"),
)
DECODER_SOURCES = ("Decoder.c", "DecoderData.c", "Register.c", "SharedData.c")
ALONE = ("hooks/*.cpp", "arch/syscall.cpp", "extension/symbols.cpp", "main.cpp", "judge.cpp")
"""Sources that are compiled each by itself: some of them have functions of the same names."""
UNITS = 4
"""How many files include all others: most of what a source costs are the headers."""
TEST_UNITS = 2
"""The same of the tests."""
INCLUDED = re.compile(r"^#include .*$", re.MULTILINE)
ARCH = NATIVE / "arch" / platform.machine()
HAS_REDUNDANCY = platform.machine() == "x86_64"
"""Whether repeated loads and stores are found here: that has a decoder of instructions, and tests of its own."""
ON_X86_64 = () if HAS_REDUNDANCY else ("redundancy/*.cpp", "redundancy_test.cpp")
SHIM_INCLUDE = (ARCH, NATIVE / "include", NATIVE / "shim", HERE)


class BuildError(Exception):
    """The compiler said no; its first lines."""


class MissingError(Exception):
    """Something that is needed to build is not installed."""


@dataclass(frozen=True)
class Variant:
    """One way to build: its name in test ids, its flags, and the environment its programs run in."""

    name: str
    flags: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()


SANITIZER_SAYS = "handle_segv=0:handle_sigbus=0:handle_abort=0:allow_user_segv_handler=1:exitcode=99"
PLAIN = Variant("plain", ("-O2",))
ADDRESS = Variant(
    "address-undefined",
    ("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"),
    (("ASAN_OPTIONS", f"{SANITIZER_SAYS}:detect_leaks=0"), ("UBSAN_OPTIONS", "print_stacktrace=1")),
)
THREAD = Variant(
    "thread",
    ("-O1", "-fsanitize=thread", "-fno-omit-frame-pointer"),
    (("TSAN_OPTIONS", f"{SANITIZER_SAYS}:die_after_fork=0:report_thread_leaks=0"),),
)
VARIANTS = (PLAIN, ADDRESS, THREAD)


def compiler() -> list[str] | None:
    """The C++ compiler of this machine; None if there is none."""
    for name in (os.environ.get("CXX"), "c++", "g++", "clang++"):
        if name and shutil.which(name.split()[0]):
            return name.split()
    return None


def can_build(variant: Variant, folder: Path) -> str | None:
    """Why programs of this variant cannot be built or run here; None if they can."""
    command = compiler()
    if command is None:
        return "no C++ compiler"
    source = folder / "probe.cpp"
    source.write_text("int main() { return 0; }\n", encoding="utf-8")
    built = _quiet([*command, *variant.flags, str(source), "-o", str(folder / "probe")])
    if built.returncode != 0:
        return f"the compiler cannot link {' '.join(variant.flags)}"
    ran = _quiet([str(folder / "probe")], env={**os.environ, **dict(variant.environment)})
    return None if ran.returncode == 0 else f"programs built with {' '.join(variant.flags)} do not run here"


def preload(variant: Variant, library: Path) -> str:
    """LD_PRELOAD for a library of a variant: the address sanitizer's runtime must come first."""
    if not any("address" in flag for flag in variant.flags):
        return str(library)
    asked = _quiet([*(compiler() or ["c++"]), "-print-file-name=libasan.so"])
    return f"{asked.stdout.strip()} {library}"


def shim_objects(sources: Sequence[Path], flags: Sequence[str]) -> list[Path]:
    """The objects of sources of the shim and its tests, and of the decoder that they use."""
    include = _unpack_decoder() if HAS_REDUNDANCY else []
    # Its own headers are not held to our warnings.
    system = [item for folder in include for item in ("-isystem", str(folder))]
    tests = [source for source in sources if source.match("*_test.cpp")]
    shim = [source for source in sources if source not in tests]
    common = [*SHIM_FLAGS, *DECODER_FLAGS, *system, *flags]
    ours = compile_all(_units(shim), common, SHIM_INCLUDE)
    # To optimise the tests themselves takes the compiler as long as all that they test.
    ours += compile_all(_test_units(tests), [*common, "-O0"], SHIM_INCLUDE)
    decoder = [DECODER / "src" / name for name in DECODER_SOURCES if HAS_REDUNDANCY]
    theirs = compile_all(decoder, ["-std=c11", "-O1", *HIDDEN, *DECODER_FLAGS], [*include, DECODER / "src"])
    return [*ours, *theirs]


def _units(sources: Sequence[Path], count: int = UNITS) -> list[Path]:
    """Sources that are alone, and files that include the others: a change of one gives its file another name."""
    alone = [source for source in sources if any(source.match(name) for name in ALONE)]
    others = [source for source in sources if source not in alone]
    units = [_unit(part, "".join(f'#include "{source}"\n' for source in part)) for part in _parts(others, count)]
    return [*alone, *units]


def _test_units(tests: Sequence[Path]) -> list[Path]:
    """Files that include the tests, each in a namespace of its own, as several have functions of the same names."""
    units = []
    for part in _parts(tests, TEST_UNITS):
        # All headers come first: within a namespace nothing is left of them.
        headers = dict.fromkeys(line for test in part for line in INCLUDED.findall(test.read_text(encoding="utf-8")))
        texts = [f'namespace of_{test.stem} {{\n#include "{test}"\n}}\n' for test in part]
        units.append(_unit(part, "".join((*(f"{header}\n" for header in headers), *texts))))
    return units


def _parts(sources: Sequence[Path], count: int) -> list[Sequence[Path]]:
    cuts = [number * len(sources) // count for number in range(count + 1)]
    return [sources[first:last] for first, last in itertools.pairwise(cuts) if first < last]


def _unit(sources: Sequence[Path], text: str) -> Path:
    """The file of this text, which includes the sources: its name says what is in them."""
    CACHE.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    unit = CACHE / f"unit-{digest}.cpp"
    unit.write_text(text, encoding="utf-8")
    return unit


def _unpack_decoder() -> list[Path]:
    """The folders of its headers."""
    DECODER.parent.mkdir(parents=True, exist_ok=True)
    with DECODER.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not DECODER.exists():
            unpacked = DECODER.with_suffix(".tmp")
            shutil.rmtree(unpacked, ignore_errors=True)
            with tarfile.open(DECODER_ARCHIVE) as archive:
                # Before 3.11.4 there are no filters.
                archive.extraction_filter = getattr(tarfile, "data_filter", None)
                archive.extractall(unpacked)
            next(unpacked.iterdir()).rename(DECODER)
            shutil.rmtree(unpacked)
    return [DECODER / "include", ROOT / "third_party" / "zycore" / "include"]


def shim_sources(*, without: Sequence[str] = ()) -> list[Path]:
    """The sources of libtachograph.so, without those that match a name of ``without``."""
    return sorted(
        path
        for room in (ARCH, NATIVE / "shim")
        for path in room.rglob("*.cpp")
        if not any(path.match(name) for name in (*without, *ON_X86_64))
    )


def compile_all(sources: Sequence[Path], flags: Sequence[str], include: Sequence[Path]) -> list[Path]:
    """Compile each source; the objects, in the same order. What was compiled before is not compiled again."""
    headers = [*NATIVE.rglob("*.h"), *HERE.glob("*.h")]
    common = b"".join(path.read_bytes() for path in sorted(headers))
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(pool.map(lambda source: _compile(source, flags, include, common), sources))


def link(objects: Sequence[Path], target: Path, flags: Sequence[str]) -> Path:
    """Link a program, or with ``-shared`` among the flags a library."""
    command = compiler() or ["c++"]
    _run([*command, *flags, *map(str, objects), "-o", str(target), "-pthread", "-ldl"])
    return target


def test_program(variant: Variant, target: Path) -> Path:
    """The program that holds all tests of tests/native; it interposes nothing, as the sanitizers' runtimes do that."""
    sources = shim_sources(without=["hooks/*.cpp", "arch/syscall.cpp", "audit.cpp", "startup.cpp"])
    sources += [HERE / "main.cpp"]
    sources += sorted(path for path in HERE.glob("*_test.cpp") if path.name not in ON_X86_64)
    return link(shim_objects(sources, variant.flags), target, variant.flags)


def judge(folder: Path) -> tuple[Path, Path]:
    """Build the judge of the unwinder, with the unwinder in it, and the code that it looks at."""
    sources = [
        *shim_sources(without=["hooks/*.cpp", "arch/syscall.cpp", "audit.cpp", "startup.cpp"]),
        HERE / "judge" / "judge.cpp",
    ]
    library = link(shim_objects(sources, ["-O2"]), folder / "judge.so", ["-shared"])
    return library, subjects(folder / "subjects.so")


def subjects(target: Path, *flags: str) -> Path:
    """Build the code that the judge looks at, with further flags for compiler and linker."""
    common = ["-std=c++20", *HIDDEN, "-O2", "-fomit-frame-pointer", *WARNINGS, *flags]
    return link(compile_all([HERE / "judge" / "subjects.cpp"], common, []), target, ["-shared", *flags])


def recorder(variant: Variant, folder: Path) -> Path:
    """Build libtachograph.so and the extension module for this interpreter into ``folder``.

    Errors:
        BuildError: it cannot be compiled.
        MissingError: pybind11 or Python's headers are not there.
    """
    include = [*SHIM_INCLUDE[:3], NATIVE / "extension", *_python_headers()]
    shim = shim_objects(shim_sources(), variant.flags)
    link(shim, folder / "libtachograph.so", [*variant.flags, "-shared"])
    sources = sorted((NATIVE / "extension").rglob("*.cpp"))
    # What only talks to Python, in templates that take the sanitizers half a minute to compile, does without them.
    bindings = [source for source in sources if "pybind11" in source.read_text(encoding="utf-8")]
    extension = compile_all(_units(bindings, 2), ["-std=c++20", "-O0", *HIDDEN], include)
    others = [source for source in sources if source not in bindings]
    extension += compile_all(_units(others), ["-std=c++20", *HIDDEN, *variant.flags], include)
    in_c = sorted((NATIVE / "extension").rglob("*.c"))
    extension += compile_all(in_c, ["-std=c17", *HIDDEN, *variant.flags], include)
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    # As the build does: what makes names readable is in the C++ runtime's archive alone.
    link(extension, folder / f"_native{suffix}", [*variant.flags, "-shared", "-static-libstdc++"])
    return folder


def _python_headers() -> list[Path]:
    try:
        import pybind11
    except ImportError as error:
        raise MissingError("pybind11 is not installed") from error
    headers = Path(sysconfig.get_path("include"))
    if not (headers / "internal" / "pycore_frame.h").exists():
        raise MissingError("the headers of this Python are not installed")
    return [headers, Path(pybind11.get_include())]


def _compile(source: Path, flags: Sequence[str], include: Sequence[Path], common: bytes) -> Path:
    command = compiler() or ["c++"]
    if source.suffix == ".c":
        command = [*command, "-x", "c"]
    arguments = [*command, *flags, *(f"-I{folder}" for folder in include)]
    digest = hashlib.sha256(repr(arguments).encode() + common + source.read_bytes()).hexdigest()[:24]
    target = CACHE / f"{source.stem}-{digest}.o"
    CACHE.mkdir(parents=True, exist_ok=True)
    with target.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # who runs beside us wants the same
        if target.exists():
            return target
        unfinished = target.with_suffix(f".{os.getpid()}.tmp")
        _run([*arguments, "-c", str(source), "-o", str(unfinished)])
        unfinished.rename(target)
    return target


def _quiet(command: list[str], env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env, timeout=300)


def _run(command: list[str]) -> None:
    done = _quiet(command)
    if done.returncode != 0:
        raise BuildError(f"{' '.join(command)}\n{done.stderr[:4000]}")


def paces(target: Path) -> Path:
    """The recorder's way to watch functions, with programs whose calls are known."""
    extension = NATIVE / "extension"
    sources = [
        HERE / "paces" / "paces.cpp",
        *(extension / "calls" / name for name in ("budget.cpp", "pace.cpp", "sample.cpp")),
    ]
    flags = ["-std=c++20", *HIDDEN, *WARNINGS, "-O2"]
    return link(compile_all(sources, flags, [extension, *SHIM_INCLUDE[:2]]), target, [])
