"""Makes one function after another, each where the last one lay: prints the name and when it ran, in nanoseconds.

With "sub" all of it happens in a subinterpreter.
"""

import sys

CHURN = """
import time

BODY = "def {name}():\\n end = time.thread_time() + 0.004\\n while time.thread_time() < end: sum(range(300))\\n"
for number in range(150):
    name, space = f"made{number:04d}", {"time": time}
    exec(compile(BODY.format(name=name), "<made>", "exec"), space)
    begin = time.monotonic_ns()
    space[name]()
    print(name, begin, time.monotonic_ns(), id(space[name].__code__), flush=True)
    space.clear()
"""

if sys.argv[1] == "main":
    exec(CHURN)
else:
    try:
        import _xxsubinterpreters as interpreters  # type: ignore[import-not-found]
    except ImportError:
        import _interpreters as interpreters  # type: ignore[import-not-found]
    interpreters.run_string(interpreters.create(), CHURN)
