"""The labels of a recording: given ones, and commit and state of the program's repository."""

from __future__ import annotations

from tachograph.format.plain_records import record_class
from tachograph.recorder.labels.environment import read_environment
from tachograph.recorder.labels.label_text import MAX_LABELS
from tachograph.recorder.problems import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

GIT_COMMIT, GIT_DIRTY = "git.commit", "git.dirty"

GIT_SECONDS = 0.2
"""The longest time for git to say whether files differ from their commit: the end of a short run waits for it."""


@record_class
class Labels:
    """What was given before the program started; ``folders`` are where its repository may be, the first one counts."""

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
    found = read_environment(environment)
    given = found.labels | dict(typed)
    if len(given) > MAX_LABELS:
        raise Refused(f"there are {len(given)} labels, more than {MAX_LABELS}: leave some out")
    return Labels(dict(sorted(given.items())), found.notes, tuple(folders))
