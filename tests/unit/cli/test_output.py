"""Figures as people read them, and a sign of life for what takes long."""

import pytest

from cli.output import duration, moment, money, size
from cli.progress import Progress


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (money(0.12345), "$0.1235"),
        (money(None), "-"),
        (duration(59.4), "59s"),
        (duration(90), "1m30s"),
        (duration(3725), "1h02m"),
        (duration(None), "-"),
        (size(512), "512 B"),
        (size(1536), "1.5 KiB"),
        (size(5 * 1024**3), "5.0 GiB"),
        (size(None), "-"),
        (moment("2026-01-02T03:04:05.123Z"), "2026-01-02 03:04:05"),
        (moment(None), "-"),
    ],
)
def test_figures(shown: str, expected: str) -> None:
    """Units are said, unknowns are a dash."""
    assert shown == expected


def test_progress_is_silent_for_two_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    """Quick work says nothing; slow work says how far it is, now and then, on stderr."""
    times = iter([0.0, 1.9, 2.1, 3.0, 7.2])
    progress = Progress("uploading", 4096, lambda: next(times))
    for _ in range(4):
        progress.add(1024)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "uploading: 2.0 KiB of 4.0 KiB (50 %)\nuploading: 4.0 KiB of 4.0 KiB (100 %)\n"
