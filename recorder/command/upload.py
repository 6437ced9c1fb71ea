"""``tachograph upload``: sends recordings to a store, those for instance that it did not take when they were made."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from tachograph.format import FormatError
from tachograph.recorder.collect.output import MANIFEST
from tachograph.recorder.collect.removal import drop_window
from tachograph.recorder.command.messages import waiting
from tachograph.recorder.problems import Refused, one_line
from tachograph.recorder.upload.archive import checked_manifest
from tachograph.recorder.upload.destination import Destination, check_installed, parse_url
from tachograph.recorder.upload.sender import Answer, Sender

EXAMPLES = """\b
Examples:
  tachograph upload work-001.tacho s3://profiles/shop
  tachograph upload --remove work-*.tacho s3://profiles/shop
  tachograph upload work-001.tacho s3://profiles/best.tacho
"""


@click.command(epilog=EXAMPLES)
@click.argument("recordings", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="DIR.tacho...")
@click.argument("url")
@click.option("--remove", is_flag=True, help="Delete each recording here when the store has it.")
@click.option("-f", "--force", is_flag=True, help="Replace a recording of the same URL.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing if all is well.")
def upload(recordings: tuple[Path, ...], url: str, *, remove: bool, force: bool, quiet: bool) -> None:
    """Send recordings to a store: to a folder, or under a URL that ends in .tacho.

    The store has each recording as one zip file, which all commands read. URL is one of fsspec, such as
    s3://bucket/folder; what the store needs to know (keys, an endpoint) is in the environment.
    """
    try:
        destination = parse_url(url)
    except ValueError as error:
        raise Refused(str(error)) from None
    if destination.names_one and len(recordings) > 1:
        raise Refused("several recordings cannot have one URL: name a folder, one that does not end in .tacho")
    check_installed(destination)
    for path in recordings:
        check_finished(path)
    with waiting("sending"):
        answers = Sender(destination, None, force=force).send(recordings, aside=False)
    for answer in answers:
        if answer.url is not None and remove:
            remove_sent(answer)
    report(answers, destination, quiet=quiet)


def check_finished(path: Path) -> None:
    """Refuse what is no recording, or one that is unfinished."""
    if not path.exists():
        raise Refused(f"there is no recording {path}")
    if path.is_dir() and not (path / MANIFEST).is_file():
        raise Refused(f"{path} is not a recording")
    try:
        manifest = checked_manifest(path)
    except FormatError as error:
        raise Refused(str(error)) from None
    if path.is_dir() and manifest.state == "recording":
        raise Refused(f"{path} is unfinished: tachograph recover {shlex.quote(str(path))} comes first")


def remove_sent(answer: Answer) -> None:
    """Delete a recording that the store has."""
    if answer.path.is_dir():
        drop_window(answer.path, answer.uuid)
    else:
        answer.path.unlink(missing_ok=True)


def report(answers: list[Answer], destination: Destination, *, quiet: bool) -> None:
    """Say what was sent. Refuses if something was not."""
    left = [answer for answer in answers if answer.url is None]
    sent = len(answers) - len(left)
    if left:
        others = f"; so were {len(left) - 1} others" if len(left) > 1 else ""
        others_sent = f"; {sent} of {len(answers)} were sent" if sent else ""
        raise Refused(f"{left[0].path} was not sent: {left[0].problem}{others}{others_sent}")
    if not quiet:
        where = answers[0].url if sent == 1 else f"{sent} recordings to {destination.folder}"
        following = f"tachograph fleet top {shlex.quote(destination.folder)}"
        click.echo(f"tachograph: sent {one_line(str(where))}; next: {following}", err=True)
