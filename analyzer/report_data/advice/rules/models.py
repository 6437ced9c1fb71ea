"""A rule about searches for parameters of models, which fit again what none of the parameters is about."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ....source_code.names import Names
from ..program import Finding, Program, Rule, Spot, time_figure

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
                "Pipeline(..., memory=FOLDER), which keeps what the first steps give for each part of the data; or"
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
    first = pipelines[0].args[0] if len(pipelines) == 1 and pipelines[0].args else None
    if any(each.arg in ("memory", None) for each in pipelines[0].keywords) or not isinstance(first, ast.List):
        return None
    final = first.elts[-1] if len(first.elts) > 1 else None
    named = final.elts[0] if isinstance(final, ast.Tuple) and final.elts else None
    return name if isinstance(named, ast.Constant) and named.value == name else None


def _calls(names: Names, wanted: frozenset[str]) -> list[ast.Call]:
    calls = (each for each in names.module.parent if isinstance(each, ast.Call))
    return [each for each in calls if (names.called(each) or "").rpartition(".")[2] in wanted]


RULES = (
    Rule(
        "transformed-again",
        "CPU time by line, with what scikit-learn's pipeline had below it; the pipeline and the grid in the source",
        "15 % of the CPU time in fitting all but the last step, none of whose parameters vary",
        transformed_again,
    ),
)
