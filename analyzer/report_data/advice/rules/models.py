"""Rules about models: searches that fit again what no parameter is about, and predictions of one row at a time."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ....source_code.names import Names
from ....source_code.source import dotted
from ..program import MOSTLY, Finding, Program, Rule, Spot, time_figure
from .faster_forms import varies

FITTED_SHARE = 0.15
"""The part of the CPU time in fitting transformers, at the low end of its interval."""

_SEARCHES = frozenset({"GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV"})
_MODELS = frozenset(
    {
        *("clf", "classifier", "model", "regressor", "reg", "estimator", "est", "svc", "svm", "lr", "logreg", "rf"),
        *("forest", "ridge", "lasso", "knn", "gb", "final", "classify", "regression"),
    }
)
"""Usual names of a pipeline's last step."""

_VALIDATION = ("/sklearn/model_selection/_search.py", "/sklearn/model_selection/_validation.py")


def transformed_again(program: Program) -> Iterator[Finding]:
    """A search over a pipeline without memory, whose parameters are those of its last step alone."""
    for spot in program.spots:
        if not spot.busy or not any(spot.below.python_s(file) for file in _VALIDATION):
            continue
        fitted_s = spot.below.python_s("/sklearn/pipeline.py", "_fit_transform_one")
        share, low = program.facts.low(fitted_s)
        if low < FITTED_SHARE:
            continue
        last = _last_step(program, spot)
        if last is not None:
            yield spot.finding(
                f"Each candidate of the search fits all steps of the pipeline again, but only parameters of “{last}”"
                " vary: the steps before give the same each time.",
                "memory=FOLDER for the pipeline, which keeps what the first steps give for each part of the data; or"
                f" transform once, and search over “{last}” alone",
                f"{time_figure(share, fitted_s)} in fitting the first steps",
            )


def _last_step(program: Program, spot: Spot) -> str | None:
    """The name of the last step, if the only pipeline has no memory and all parameters of the search are that step's.

    A cell that took no time is not in the recording: of a pipeline that is not there, functions tell that it has no
    memory, and the step's name that it is the model.
    """
    texts = [names for _, names in program.files()]
    texts += [names for cell in program.cells if (names := program.names(cell)) is not None and names not in texts]
    pipelines = [call for names in texts for call in _calls(names, frozenset({"Pipeline", "make_pipeline"}))]
    searches = [call for names in texts for call in _calls(names, _SEARCHES)]
    if len(searches) != 1:
        return None
    given = [each.value for each in searches[0].keywords if each.arg in ("param_grid", "param_distributions")]
    grid = [*given, *searches[0].args[1:2], None][0]
    keys = [each.value if isinstance(each, ast.Constant) else None for each in getattr(grid, "keys", [])]
    steps = {each.partition("__")[0] for each in keys if isinstance(each, str) and "__" in each}
    if len(steps) != 1 or not all(isinstance(each, str) and "__" in each for each in keys):
        return None
    (name,) = steps
    if not pipelines:
        unkept = [each for each in spot.below.python if each.qualified == "NotMemorizedFunc.__call__"]
        return name if unkept and name in _MODELS else None
    if len(pipelines) != 1 or any(each.arg in ("memory", None) for each in pipelines[0].keywords):
        return None
    given = pipelines[0].args
    if len(given) > 1 and isinstance(given[-1], ast.Call):
        # make_pipeline() names each step after its class.
        made = (dotted(given[-1].func) or "").rpartition(".")[2].lower()
        return name if made == name else None
    first = given[0] if given else None
    if not isinstance(first, ast.List):
        return None
    final = first.elts[-1] if len(first.elts) > 1 else None
    named = final.elts[0] if isinstance(final, ast.Tuple) and final.elts else None
    return name if isinstance(named, ast.Constant) and named.value == name else None


def _calls(names: Names, wanted: frozenset[str]) -> list[ast.Call]:
    calls = (each for each in names.module.parent if isinstance(each, ast.Call))
    return [each for each in calls if (names.called(each) or "").rpartition(".")[2] in wanted]


ROW_SHARE = 0.10
"""The part of the CPU time at a line that predicts one row, at the low end of its interval."""

_PREDICTING = frozenset(
    {"predict", "predict_proba", "predict_log_proba", "decision_function", "score_samples", "transform", "kneighbors"}
)


def one_row_each_time(program: Program) -> Iterator[Finding]:
    """``model.predict(row.reshape(1, -1))`` in a loop over rows."""
    for spot in program.spots:
        if spot.line.low < ROW_SHARE or not spot.below.python_s("/sklearn/"):
            continue
        for node in spot.expressions():
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or len(node.args) != 1:
                continue
            loop, method = spot.loop(node), node.func.attr
            if method not in _PREDICTING or loop is None or isinstance(loop, ast.While) or not _one_row(node.args[0]):
                continue
            if not varies(node.args[0], loop, spot) or varies(node.func.value, loop, spot):
                continue
            if spot.below.python_s("/sklearn/", method) >= MOSTLY * spot.line.cpu_s:
                yield spot.finding(
                    f"{method}() is called for one row at a time: checking it takes longer than calculating.",
                    f"{method}() of all rows at once, before the loop, and its results by number in it",
                )
                break


def _one_row(node: ast.expr) -> bool:
    """True of ``row.reshape(1, -1)``, ``[row]``, ``row[None]``, ``rows[i : i + 1]`` and ``table.iloc[[i]]``."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "reshape":
        shape = node.args[0].elts if node.args and isinstance(node.args[0], ast.Tuple) else node.args
        return len(shape) == 2 and isinstance(shape[0], ast.Constant) and shape[0].value == 1
    if isinstance(node, ast.List):
        return len(node.elts) == 1 and not isinstance(node.elts[0], ast.Starred)
    if not isinstance(node, ast.Subscript):
        return False
    index = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
    if isinstance(index, ast.List):
        return len(index.elts) == 1
    if isinstance(index, ast.Constant):
        return index.value is None
    if not isinstance(index, ast.Slice) or index.lower is None or not isinstance(index.upper, ast.BinOp):
        return False
    by = index.upper.right
    return (
        isinstance(index.upper.op, ast.Add)
        and ast.dump(index.upper.left) == ast.dump(index.lower)
        and isinstance(by, ast.Constant)
        and by.value == 1
    )


RULES = (
    Rule(
        "one-row-each-time",
        "CPU time by line, with what scikit-learn's function below it had; the argument and the loop in the source",
        "10 % of the CPU time, half of the line's in the method; the argument is one row, another one in each round",
        one_row_each_time,
    ),
    Rule(
        "transformed-again",
        "CPU time by line, with what scikit-learn's pipeline had below it; the pipeline and the grid in the source",
        "15 % of the CPU time in fitting all but the last step, none of whose parameters vary",
        transformed_again,
    ),
)
