"""The classes of opcodes are those that CPython's own header gives."""

from __future__ import annotations

import json
import sys
import sysconfig
from pathlib import Path

import pytest
from opcode_classes import PRESENT, classify, main

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
NAME = "opcode.h" if sys.version_info < (3, 13) else "opcode_ids.h"
HEADER = Path(sysconfig.get_path("include")) / NAME


@pytest.mark.skipif(not HEADER.exists(), reason="the headers of this CPython are not installed")
def test_the_running_interpreter() -> None:
    assert classify(HEADER.read_text("utf-8")) == json.loads(PRESENT.read_text("utf-8"))[VERSION]


def test_versions_that_are_not_named_stay() -> None:
    assert main([]) == PRESENT.read_text("utf-8")
