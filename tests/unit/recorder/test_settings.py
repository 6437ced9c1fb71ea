"""The table of the settings of a recorded program, and the text that is made of them."""

from __future__ import annotations

import pytest

from tachograph.recorder.command.options import OPTIONS, Options
from tachograph.recorder.command.settings import FLAG, NUMBER, SETTINGS, TEXT, WORD, settings_text
from tachograph.recorder.inprocess.configuration import Configuration


def test_each_option_of_a_recorded_program_is_in_the_table() -> None:
    for option in OPTIONS.values():
        setting = SETTINGS.get(option.setting)
        assert (setting is not None) == bool(option.setting)
        if setting is not None and option.choices:
            assert setting.kind == TEXT or set(setting.words) == set(option.choices)


@pytest.mark.parametrize(
    "options",
    [
        Options(),
        Options(memory=False, budget=0.1),
        Options(calls=True, calls_budget=33.333333, calls_choice="rejects", calls_top=4096, calls_period_s=0.1),
        Options(redundancy=True, accesses="loads", start_paused=True, children=False),
        Options(sampler="signal", include=("a,b",), exclude=("x=y", "c:d")),
    ],
)
def test_values_are_of_their_kinds(options: Options) -> None:
    """The native library takes nothing else: a value that it cannot read would be a recording that does not begin."""
    given = options.as_settings("setting")
    texts = Configuration("/spool", settings_text(given)).values
    assert texts.keys() == given.keys()
    for key, text in texts.items():
        setting = SETTINGS[key]
        digits = text.replace(".", "", 1) if setting.kind == "decimal" else text
        assert setting.kind == TEXT or text in setting.words or (digits.isdecimal() and len(digits) <= 15)
        assert setting.kind != FLAG or text in "01"
        assert setting.kind != WORD or text in setting.words


def test_a_text_of_each_kind() -> None:
    assert settings_text({"a": True, "b": 10**12, "c": 2.5, "d": "word", "e": ["x,y", "%"]}) == (
        "a=1,b=1000000000000,c=2.5,d=word,e=x%2cy:%25"
    )
    assert SETTINGS["interval_ns"].kind == NUMBER
