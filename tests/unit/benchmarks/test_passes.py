"""The part of a benchmark that runs inside the program."""

from pathlib import Path

from programs.passes import peak_rss, run


def test_passes_are_counted_without_the_first() -> None:
    calls: list[int] = []
    report = run(lambda: calls.append(1), loops=3, seconds=0.0)
    assert (report["loops"], len(calls)) == (3, 4)


def test_without_a_number_of_passes_time_decides() -> None:
    report = run(lambda: None, loops=0, seconds=0.01)
    assert report["loops"]
    assert report["elapsed_s"] is not None
    assert report["elapsed_s"] >= 0.01


def test_the_peak_is_what_the_system_says(tmp_path: Path) -> None:
    status = tmp_path / "status"
    status.write_text("Name:\tpython\nVmPeak:\t  900 kB\nVmHWM:\t  12 kB\nVmRSS:\t 11 kB\n", encoding="ascii")
    assert peak_rss(status) == 12 * 1024
    assert peak_rss(tmp_path / "none") is None
