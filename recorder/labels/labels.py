"""The labels of a recording: given ones, those of the environment, and commit and state of the program's repository.

The environment has labels of OpenTelemetry, Kubernetes, Slurm and launchers of ranks.
"""

from __future__ import annotations

from tachograph.format.plain_records import record_class
from tachograph.recorder.labels.label_text import MAX_LABELS, checked, parse_labels
from tachograph.recorder.problems import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

GIT_COMMIT, GIT_DIRTY = "git.commit", "git.dirty"

GIT_SECONDS = 0.2
"""The longest time for git to say whether files differ from their commit: the end of a short run waits for it."""


@record_class
class Labels:
    """The labels given before the program started; ``folders`` may be in its repository, the first one counts."""

    given: Mapping[str, str]
    notes: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()

    def masked(self) -> dict[str, str]:
        """The labels that were given, with values that look like secrets masked. Slow: not before the program runs."""
        from tachograph.format.spool.masking import MASK, is_suspicious, mask_text

        return {key: MASK if is_suspicious(key) else mask_text(value) for key, value in self.given.items()}

    def of_repository(self) -> dict[str, str]:
        """Commit and state of the program's repository, as far as they are known; what was given goes before."""
        from pathlib import Path

        from tachograph.recorder.labels.git_repository import find_repository, is_dirty, read_commit

        repository = next(filter(None, map(find_repository, map(Path, self.folders))), None)
        commit = None if repository is None else read_commit(repository)
        if repository is None or commit is None or GIT_COMMIT in self.given:
            return {}
        dirty = is_dirty(repository, commit, GIT_SECONDS)
        return {GIT_COMMIT: commit} | ({} if dirty is None else {GIT_DIRTY: str(dirty).lower()})


def gather_labels(
    typed: Iterable[tuple[str, str]], environment: Mapping[str, str], folders: Iterable[str] = ()
) -> Labels:
    """The labels of the command line and of the environment; where both have one, the command line counts.

    Refuses labels that say nothing sensible, and too many.
    """
    from_environment = read_environment(environment)
    given = from_environment.labels | dict(typed)
    if len(given) > MAX_LABELS:
        raise Refused(f"there are {len(given)} labels, more than {MAX_LABELS}: leave some out")
    return Labels(dict(sorted(given.items())), from_environment.notes, tuple(folders))


OURS, ATTRIBUTES, SERVICE = "TACHOGRAPH_LABELS", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_SERVICE_NAME"

RANKS: Mapping[str, tuple[str, ...]] = {
    "rank": ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"),
    "world_size": ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"),
    "local_rank": ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"),
}
"""Labels that are numbers, and the variables of torchrun, Open MPI and MPICH that give them; the first one counts."""

SLURM = (
    *("JOB_ID", "JOB_NAME", "STEP_ID", "PROCID", "NTASKS", "NODEID", "NNODES", "LOCALID"),
    *("ARRAY_JOB_ID", "ARRAY_TASK_ID", "RESTART_COUNT"),
)
"""Variables of Slurm, without ``SLURM_``; each is the label ``slurm.NAME`` in small letters."""

KUBERNETES: Mapping[str, tuple[str, ...]] = {
    "k8s.pod.name": ("POD_NAME", "MY_POD_NAME", "K8S_POD_NAME", "OTEL_RESOURCE_ATTRIBUTES_POD_NAME"),
    "k8s.namespace.name": ("POD_NAMESPACE", "MY_POD_NAMESPACE", "K8S_NAMESPACE", "NAMESPACE"),
    "k8s.node.name": ("NODE_NAME", "MY_NODE_NAME", "K8S_NODE_NAME", "OTEL_RESOURCE_ATTRIBUTES_NODE_NAME"),
    "k8s.pod.uid": ("POD_UID", "MY_POD_UID", "K8S_POD_UID"),
    "k8s.container.name": ("CONTAINER_NAME", "MY_CONTAINER_NAME", "K8S_CONTAINER_NAME"),
}
"""Labels with OpenTelemetry's names, and usual names of variables that a pod has by the downward API."""

IN_KUBERNETES = "KUBERNETES_SERVICE_HOST"
"""Every container of a pod has it. Elsewhere NODE_NAME and the like mean other things."""


@record_class
class EnvironmentLabels:
    """Labels, and what to tell the reader of the recording about those that could not be read."""

    labels: dict[str, str]
    notes: tuple[str, ...] = ()


def read_environment(environment: Mapping[str, str]) -> EnvironmentLabels:
    """The labels that an environment gives, those of TACHOGRAPH_LABELS first.

    What other tools' variables say and no label can be is left out: they are not there for us, and keep no program
    from starting. Refuses a TACHOGRAPH_LABELS that says nothing sensible.
    """
    notes: list[str] = []
    labels = _ranks(environment)
    for name in SLURM:
        _add(labels, f"slurm.{name.lower()}", environment.get(f"SLURM_{name}"))
    if IN_KUBERNETES in environment:
        for label, names in KUBERNETES.items():
            _add(labels, label, _first(environment, names))
    if attributes := environment.get(ATTRIBUTES):
        try:
            labels |= parse_labels(attributes)
        except ValueError as error:
            notes.append(f"{ATTRIBUTES} gave no labels: {error}")
    _add(labels, "service.name", environment.get(SERVICE))
    if ours := environment.get(OURS):
        try:
            labels |= parse_labels(ours)
        except ValueError as error:
            raise Refused(f"{OURS}: {error}") from None
    return EnvironmentLabels(labels, tuple(notes))


def _ranks(environment: Mapping[str, str]) -> dict[str, str]:
    ranks = {label: _first(environment, names) for label, names in RANKS.items()}
    return {
        label: value
        for label, value in ranks.items()
        if value is not None and value.isascii() and value.isdecimal() and len(value) < 10
    }


def _first(environment: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((environment[name] for name in names if environment.get(name)), None)


def _add(labels: dict[str, str], label: str, value: str | None) -> None:
    if value:
        try:
            labels.update([checked(label, value)])
        except ValueError:
            return  # not printable, or too long: unknown
