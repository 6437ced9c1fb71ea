"""Rules about what libraries do for a line or behind the program: parsing, logging, imports, compiling, pickling."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ....source_code.names import Names
from ....source_code.source import Function, Module, short
from ...numbers import percent, seconds
from ..program import MOSTLY, Finding, Program, Rule, Spot, time_figure
from .repeated import runs_again

LARGE_SHARE = 0.20
"""The part of the CPU time from which on the whole program is worth a change."""

IMPORT_SECONDS = 0.25
"""CPU time of an import: less is not felt."""

COMPILE_SHARE = 0.10

_ONCE = "define it once, at the level of the module, and pass what varies as an argument"

_ISO = ("%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S")
"""Formats of strptime that ``datetime.fromisoformat`` reads to the same value in all Pythons from 3.7 on."""

_LEVELS = frozenset({"debug", "info", "warning", "error"})
_SHOWING = ("_log", "handle", "callHandlers", "makeRecord", "emit")
_LOGGING = "/logging/__init__.py"
_JIT = frozenset(f"numba.{name}" for name in ("jit", "njit", "vectorize", "guvectorize"))
_COMPILERS = (("_compile_for_args", "/numba/core/dispatcher.py"), ("compile", "/numba/core/dispatcher.py"))
_HASHERS = (
    ("generate_password_hash", "/werkzeug/security.py"),
    ("check_password_hash", "/werkzeug/security.py"),
    ("make_password", "/django/contrib/auth/hashers.py"),
    ("check_password", "/django/contrib/auth/hashers.py"),
)
_OWN_HASHERS = frozenset(
    {
        *("hashlib.pbkdf2_hmac", "hashlib.scrypt", "bcrypt.hashpw", "bcrypt.checkpw", "bcrypt.kdf"),
        *("cryptography.hazmat.primitives.kdf.pbkdf2.PBKDF2HMAC", "cryptography.hazmat.primitives.kdf.scrypt.Scrypt"),
    }
)
"""Functions that a program calls itself to hash passwords, in native code."""
_TESTS = (("pytest_runtest_protocol", "/_pytest/runner.py"), ("runTests", "/unittest/main.py"))
_PICKLERS = (
    ("dumps", "/multiprocessing/reduction.py"),
    ("dump", "/multiprocessing/reduction.py"),
    ("recv", "/multiprocessing/connection.py"),
    ("_sendback_result", "/concurrent/futures/process.py"),
    ("dumps", "/joblib/externals/loky/backend/reduction.py"),
    ("dumps", "/joblib/externals/cloudpickle/cloudpickle.py"),
)
"""Functions that pickle and unpickle what goes from one process to another, with the ends of their files' paths."""


def iso_date(program: Program) -> Iterator[Finding]:
    """``datetime.strptime(text, "%Y-%m-%d")``: a format for which there is a parser in C."""
    for spot in program.spots:
        if not spot.busy or spot.below.python_s("/_strptime.py") < MOSTLY * spot.line.cpu_s:
            continue
        for node in spot.expressions():
            if isinstance(node, ast.Call) and spot.names.called(node) == "datetime.datetime.strptime" and _iso(node):
                yield spot.finding(
                    "strptime() goes through its format in Python, for each text.",
                    f"datetime.fromisoformat({short(node.args[0])}), which reads this format in C",
                )
                break


def _iso(call: ast.Call) -> bool:
    return len(call.args) == 2 and isinstance(call.args[1], ast.Constant) and call.args[1].value in _ISO


def log_not_shown(program: Program) -> Iterator[Finding]:
    """``log.debug(f"...")``: the text is made, and nothing shows it."""
    for spot in program.spots:
        if not spot.busy or not spot.names.imports("logging") or spot.below.python_s(_LOGGING, *_SHOWING) > 0:
            continue
        # Where the text takes long, logging itself may be in no sample.
        refused = spot.below.python_s(_LOGGING) > 0
        makes = max((each.total_s for each in spot.below.python), default=0.0) >= MOSTLY * spot.line.cpu_s
        for node in spot.expressions():
            debug = makes and isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "debug"
            if (refused or debug) and _makes_text(node) and isinstance(spot.module.parent.get(node), ast.Expr):
                yield spot.finding(
                    "The message is made each time, and its level is not shown: no record of it was handled.",
                    "log.debug('... %s', value), which makes the text when it is shown; behind “if"
                    " log.isEnabledFor(level):” where a call makes the value",
                )
                break


def _makes_text(node: ast.expr) -> bool:
    """True of a call such as ``log.debug()`` whose message is put together before the call."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _LEVELS:
        return False
    if not node.args or not isinstance(node.func.value, ast.Name | ast.Attribute):
        return False
    message = node.args[0]
    if isinstance(message, ast.JoinedStr):
        return True
    if isinstance(message, ast.BinOp) and isinstance(message.op, ast.Mod | ast.Add):
        return any(isinstance(part, ast.Constant) and isinstance(part.value, str) for part in ast.walk(message))
    return isinstance(message, ast.Call) and isinstance(message.func, ast.Attribute) and message.func.attr == "format"


def unused_import(program: Program) -> Iterator[Finding]:
    """Imports at the start of a module that take long, of packages that did nothing later in this run."""
    for spot in program.spots:
        if not spot.busy or spot.line.cpu_s < IMPORT_SECONDS:
            continue
        for statement in spot.module.statements.get(spot.line.line, ()):
            if (
                not isinstance(statement, ast.Import | ast.ImportFrom)
                or spot.module.scope(statement) is not spot.module.tree
            ):
                continue
            packages = _imported(statement)
            importing = spot.below.python_s("<frozen importlib")
            if importing < MOSTLY * spot.line.cpu_s or not packages or not _in_functions_only(statement, spot.module):
                continue
            if program.facts.ran_after_import(packages):
                continue
            yield spot.finding(
                f"Importing {', '.join(packages)} takes this time, and no sample shows that any of it ran later.",
                "import it in the functions that use it: then runs that do not call them start without it",
            )
            break


def _imported(statement: ast.Import | ast.ImportFrom) -> list[str]:
    """The top-level packages of an import; none of a relative one."""
    if isinstance(statement, ast.ImportFrom):
        return [statement.module.partition(".")[0]] if statement.module and not statement.level else []
    return list(dict.fromkeys(alias.name.partition(".")[0] for alias in statement.names))


def _in_functions_only(statement: ast.Import | ast.ImportFrom, module: Module) -> bool:
    """True if what is imported is used in functions, and nowhere else in the file."""
    bound = {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
    uses = [node for node in module.parent if isinstance(node, ast.Name) and node.id in bound]
    return bool(uses) and all(_in_body(node, module) for node in uses)


def _in_body(node: ast.AST, module: Module) -> bool:
    """True if a node is run by calls of a function: not as its decorator, default or annotation."""
    while node in module.parent:
        child, node = node, module.parent[node]
        if isinstance(node, Function):
            return child in node.body if isinstance(node.body, list) else child is node.body
    return False


def compiled_each_call(program: Program) -> Iterator[Finding]:
    """Lines that call what a function makes anew in each round of a loop: numba compiles each, from the same source."""
    for spot in program.spots:
        compiling = max(spot.below.python_s(file, name) for name, file in _COMPILERS)
        share, low = program.facts.low(compiling)
        if low < COMPILE_SHARE:
            continue
        for node in spot.expressions():
            maker = _maker(spot.names, node)
            inner = None if maker is None else _compiled_inside(spot.names, maker)
            if maker is None or inner is None:
                continue
            yield Finding(
                share,
                f"{time_figure(share, compiling)} in compiling, on line {spot.line.line}",
                f"“{inner.name}” is defined inside “{maker.name}”: each call of that makes a new function, and numba"
                " compiles it again and again in this run.",
                _ONCE,
                spot.line.file_id,
                inner.lineno,
                f"{maker.name}.<locals>.{inner.name}",
            )
            return


def _maker(names: Names, node: ast.expr) -> ast.FunctionDef | None:
    """The function of this file that made what is called here, and is called in each round of a loop."""
    if not isinstance(node, ast.Call):
        return None
    made: ast.expr | None = node.func
    if isinstance(made, ast.Name):
        bound = names.binding(made.id, made)
        made = bound[0] if len(bound) == 1 else None
    if not isinstance(made, ast.Call) or not isinstance(made.func, ast.Name) or not runs_again(names, made):
        return None
    name = made.func.id
    defined = [each for each in names.module.tree.body if isinstance(each, ast.FunctionDef) and each.name == name]
    # A decorator may keep what it made.
    return defined[0] if len(defined) == 1 and not defined[0].decorator_list else None


def _compiled_inside(names: Names, maker: ast.FunctionDef) -> ast.FunctionDef | None:
    """The function that numba compiles and that a function defines and returns; it may call others made with it."""
    decorators = set(_jit_decorators(names))
    last = maker.body[-1]
    returned = last.value if isinstance(last, ast.Return) else None
    if not isinstance(returned, ast.Name):
        return None
    inner = [each for each in maker.body if isinstance(each, ast.FunctionDef) and each.name == returned.id]
    return inner[0] if len(inner) == 1 and decorators.intersection(inner[0].decorator_list) else None


def compiled_each_run(program: Program) -> Iterator[Finding]:
    """Functions that numba compiles in each run, as none of its decorators keeps the result."""
    compiling = program.facts.cpu_below(_COMPILERS, _of_numba)
    share, low = program.facts.low(compiling)
    if low < COMPILE_SHARE or any(True for _ in compiled_each_call(program)):
        return
    for file, names in program.files():
        decorators = list(_jit_decorators(names))
        if not decorators or any(_cached(each) for each in decorators):
            continue
        inner = [each for each in decorators if _nested(names.module, each)]
        outer = [each for each in decorators if each not in inner]
        # What is kept of an inner function depends on what it refers to: one that calls others is never found again.
        text = "numba compiles these functions anew in each run."
        instead = "cache=True in the decorator: the second run reads what the first one compiled"
        if inner and outer:
            instead = f"{instead}. For those inside another function, compiled at each call of that: {_ONCE}"
        elif inner:
            text = "These functions are defined inside another one: numba compiles them anew at each call of that."
            instead = _ONCE
        yield Finding(
            share,
            f"{time_figure(share, compiling)} in compiling",
            text,
            instead,
            file,
            min(each.lineno for each in outer or inner),
        )
        return


def _of_numba(path: str) -> bool:
    """True of numba's own functions, such as those of typed lists: no decorator of the program's keeps their code."""
    return "/numba/" in path and "/numba/core/" not in path


def _nested(module: Module, decorator: ast.expr) -> bool:
    """True if a decorator's function is defined inside another function."""
    return module.scope(module.parent[decorator]) is not module.tree


def _jit_decorators(names: Names) -> Iterator[ast.expr]:
    for node in names.module.parent:
        if isinstance(node, ast.FunctionDef):
            for each in node.decorator_list:
                if names.decorator(each) in _JIT:
                    yield each


def _cached(decorator: ast.expr) -> bool:
    """True if a decorator has cache=True, or takes arguments that cannot be read here."""
    keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
    return any(each.arg is None or each.arg == "cache" for each in keywords)


def list_for_compiled(program: Program) -> Iterator[Finding]:
    """A list that is passed to a function that numba compiled, which looks at each of its elements in Python."""
    for spot in program.spots:
        if spot.line.low < COMPILE_SHARE or not spot.names.imports("numba"):
            continue
        # The type of an argument that is no list is found by the dispatcher, which calls the same function.
        typing = spot.below.python_s("/numba/core/typing/typeof.py", "typeof")
        other = spot.below.python_s("/numba/core/dispatcher.py", "typeof_pyval", *(name for name, _ in _COMPILERS))
        if typing - other < MOSTLY * spot.line.cpu_s:
            continue
        yield spot.finding(
            "A list or a set is passed to a function that numba compiled: at each call its elements are looked at and"
            " converted one by one, by Python.",
            "pass an array, numpy.array(values), or a numba.typed.List, made once before",
        )


def hash_in_tests(program: Program) -> Iterator[Finding]:
    """Tests that hash passwords as safely, and so as slowly, as the program does."""
    facts = program.facts
    if facts.low(facts.cpu_below(_TESTS))[1] < MOSTLY:
        return
    mine = [spot for spot in program.spots if spot.busy and _hashes(spot)]
    if facts.low(sum(spot.line.cpu_s for spot in mine))[1] >= LARGE_SHARE:
        yield mine[0].finding(
            "Hashes of passwords take long on purpose, and the tests make them as the program does.",
            "in the tests alone little work: a setting for the number of rounds, which a fixture of all tests"
            " (autouse=True, monkeypatch) lowers; and users that all tests share made once",
            weight=sum(spot.line.share for spot in mine),
        )
    if facts.low(facts.cpu_below(_HASHERS))[1] < LARGE_SHARE:
        return
    for spot in program.spots:
        hashing = max((spot.below.python_s(file, name) for name, file in _HASHERS), default=0.0)
        if not spot.busy or hashing < MOSTLY * spot.line.cpu_s:
            continue
        yield spot.finding(
            "Hashes of passwords take long on purpose, and the tests make them as the program does.",
            "in the tests alone a method with little work, such as generate_password_hash(...,"
            ' method="pbkdf2:sha256:1") or PASSWORD_HASHERS = [MD5PasswordHasher] in Django\'s settings of tests',
        )


def _hashes(spot: Spot) -> bool:
    """True if a line calls a function that hashes passwords, in native code, and little else."""
    calls = [each for each in spot.expressions() if spot.names.called(each) in _OWN_HASHERS]
    return bool(calls) and spot.below.library_s("") >= MOSTLY * spot.line.cpu_s


def pickled(program: Program) -> Iterator[Finding]:
    """Programs that spend their time on handing data from one process to another."""
    taken = program.facts.cpu_below(_PICKLERS)
    share, low = program.facts.low(taken)
    if low < LARGE_SHARE or program.profile.totals.processes < 2:
        return
    yield Finding(
        share,
        f"{time_figure(share, taken)} in pickling and unpickling, in {program.profile.totals.processes} processes",
        "Arguments and results of workers are pickled, sent, and unpickled: that takes much of the time.",
        "send less: what is the same for all tasks once (initializer=, or before a fork), names of files or ranges"
        " in place of data, larger pieces with smaller results, multiprocessing.shared_memory for arrays",
    )


def spinning_threads(program: Program) -> Iterator[Finding]:
    """Threads of OpenMP and OpenBLAS that wait for work without sleeping."""
    totals = program.profile.totals
    share, low = program.facts.low(totals.pool_waiting_s)
    if low < LARGE_SHARE:
        return
    yield Finding(
        share,
        f"{time_figure(share, totals.pool_waiting_s)} in native threads that wait for work",
        f"{percent(totals.pool_waiting_s / totals.pool_cpu_s)} % of the native threads' {seconds(totals.pool_cpu_s)} is"
        " busy waiting: it makes nothing faster, and takes CPUs from others.",
        "OMP_WAIT_POLICY=PASSIVE, or fewer threads (OMP_NUM_THREADS, OPENBLAS_NUM_THREADS, MKL_NUM_THREADS), set before"
        " the program starts",
    )


def single_loader(program: Program) -> Iterator[Finding]:
    """``DataLoader(...)`` of torch without workers, which makes each batch while the model waits."""
    loading = program.facts.cpu_below((("_next_data", "/torch/utils/data/dataloader.py"),))
    share, low = program.facts.low(loading)
    if low < LARGE_SHARE:
        return
    for file, names in program.files():
        for node in names.module.parent:
            if names.called(node) != "torch.utils.data.DataLoader" or not isinstance(node, ast.Call):
                continue
            if any(each.arg in (None, "num_workers") for each in node.keywords):
                return  # one that has workers, or may have: which of them has the time is not known
            yield Finding(
                share,
                f"{time_figure(share, loading)} in making batches",
                "The DataLoader has no workers: it makes each batch in the main process, while the model waits.",
                "num_workers= the number of CPUs to spare, with persistent_workers=True",
                file,
                node.lineno,
            )
            return


STEP_SHARE = 0.10
"""The part of the CPU time at lines that call compiled functions in a loop, at the low end of its interval."""
ENTERING = 0.15
"""The part of the line's time in numba's own code for calls, each of its functions without what it calls."""
COMPILED_WORK = 0.30
"""More than that of it in the compiled code itself is work worth a call."""


def compiled_steps(program: Program) -> Iterator[Finding]:
    """A loop in Python that calls a function which numba compiled: to enter it takes longer than what it does."""
    for spot in program.spots:
        if spot.line.low < STEP_SHARE or not spot.names.imports("numba"):
            continue
        called = next((name for node in spot.expressions() if (name := _compiled_in_loop(node, spot.names))), None)
        if called is None:
            continue
        native = spot.below.native
        entering = sum(each.own_s for each in native if "/numba/_" in each.path)
        working = sum(each.own_s for each in native if each.where == "[anonymous]")
        compiling = spot.below.python_s("/numba/core/dispatcher.py")
        rest = spot.line.cpu_s - compiling
        if entering >= ENTERING * rest and working <= COMPILED_WORK * rest and rest >= MOSTLY * spot.line.cpu_s:
            yield spot.finding(
                f"Each round of the loop calls {called}(), which numba compiled: to look at the arguments of a call"
                " takes longer than what it does with them.",
                "a function with @njit that has the loop itself, called once: compiled code calls compiled code"
                " directly",
            )


def _compiled_in_loop(node: ast.expr, names: Names) -> str | None:
    """The function of the file that numba compiled and that a loop in Python calls."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or not names.module.loops(node):
        return None
    functions = names.functions.get(node.func.id, [])
    if len(functions) != 1 or not any(names.decorator(each) in _JIT for each in functions[0].decorator_list):
        return None
    scope = names.module.scope(node)
    around = getattr(scope, "decorator_list", [])
    return None if any(names.decorator(each) in _JIT for each in around) else node.func.id


ENCODING_SHARE = 0.15
"""The part of the CPU time in FastAPI's encoder, at the low end of its interval."""


def encoded_in_python(program: Program) -> Iterator[Finding]:
    """Results of endpoints that FastAPI takes apart in Python, as no type of them is given."""
    encoder = "/fastapi/encoders.py"
    _, _, _, lines = program.facts.cpu_inside(lambda name, path: name == "jsonable_encoder" and path.endswith(encoder))
    spent = sum(each for (file, line), each in lines.items() if not _calls_encoder(program.names(file), line))
    share, low = program.facts.low(spent)
    if low >= ENCODING_SHARE:
        yield Finding(
            share,
            f"{time_figure(share, spent)} in FastAPI's jsonable_encoder()",
            "FastAPI goes through each value that an endpoint without a type of its result returns, in Python.",
            "a model of pydantic as the endpoint's type of result (def items() -> Page:), which is written as JSON in"
            ' native code; or Response(text, media_type="application/json") of a text that is ready',
        )


def _calls_encoder(names: Names | None, line: int) -> bool:
    """True if a line calls the encoder itself."""
    calls = () if names is None else names.module.expressions(line)
    return any((names.called(each) or "").endswith("jsonable_encoder") for each in calls if names is not None)


RULES = (
    Rule(
        "iso-date",
        "CPU time by line, with what _strptime's functions below it had",
        "5 % of the CPU time, most of it in strptime; the format is one that fromisoformat() reads",
        iso_date,
    ),
    Rule(
        "log-not-shown",
        "CPU time by line, with what logging's functions below it had",
        "5 % of the CPU time at a line that only logs, of which no sample is in handling a record",
        log_not_shown,
    ),
    Rule(
        "unused-import",
        "CPU time by line, with what the import system below it had",
        "5 % of the CPU time and 0.25 s; only functions of the file use it, and nothing of the package ran later",
        unused_import,
    ),
    Rule(
        "compiled-each-call",
        "CPU time below numba's compiler at the line, and the decorators and loops in the source",
        "10 % of the CPU time in compiling at a line that calls what a function of the file made in each round of a "
        "loop, in the same function or in one that calls it",
        compiled_each_call,
    ),
    Rule(
        "compiled-each-run",
        "CPU time below numba's compiler, and the decorators in the source",
        "10 % of the CPU time in compiling, no decorator with cache=, and not for compiled-each-call",
        compiled_each_run,
    ),
    Rule(
        "list-for-compiled",
        "CPU time by line, with what numba's function that finds the type of a value had",
        "10 % of the CPU time at the line, most of it in finding types of elements",
        list_for_compiled,
    ),
    Rule(
        "hash-in-tests",
        "CPU time below functions of werkzeug and Django that hash passwords, and below a runner of tests",
        "20 % of the CPU time in hashing, in a program that mostly runs tests",
        hash_in_tests,
    ),
    Rule(
        "pickled",
        "CPU time below the functions of multiprocessing, concurrent.futures and joblib that pickle",
        "20 % of the CPU time of all processes",
        pickled,
    ),
    Rule(
        "spinning-threads",
        "CPU time of native threads, and what they ran",
        "20 % of the CPU time in waiting for work, without sleeping",
        spinning_threads,
    ),
    Rule(
        "single-loader",
        "CPU time below torch's loader that works in the main process, and the call in the source",
        "20 % of the CPU time, and no call with num_workers=",
        single_loader,
    ),
    Rule(
        "compiled-steps",
        "CPU time by line, with what numba's libraries and compiled code below it had; the decorators in the source",
        "10 % of the CPU time, 15 % of the line's in numba's code for calls, at most 30 % in what it compiled",
        compiled_steps,
    ),
    Rule(
        "encoded-in-python",
        "CPU time below FastAPI's encoder",
        "15 % of the CPU time",
        encoded_in_python,
    ),
)
