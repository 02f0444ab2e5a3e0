"""Numbers as people read them."""

from __future__ import annotations

_MAGNITUDES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def count(value: float) -> str:
    """
    >>> count(0), count(12), count(345678), count(2.5e9)
    ('0', '12', '345,678', '2.50 G')
    """
    if abs(value) < 1e7:
        return f"{value:,.0f}" if abs(value) >= 100 or abs(value - round(value)) < 0.05 else f"{value:.1f}"
    size, letter = next((size, letter) for size, letter in _MAGNITUDES if abs(value) >= size)
    return f"{value / size:.2f} {letter}"


def duration(seconds: float) -> str:
    """
    >>> duration(0.00042), duration(0.25), duration(75), duration(86400)
    ('0.4 ms', '250 ms', '75.0 s', '24.0 h')
    """
    if seconds < 1:
        milliseconds = seconds * 1000
        return f"{milliseconds:.1f} ms" if 0 < milliseconds < 10 else f"{milliseconds:.0f} ms"
    if seconds < 300:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def hours(value: float) -> str:
    """
    >>> hours(0.1234), hours(24.0)
    ('0.123 h', '24.0 h')
    """
    return f"{value:.1f} h" if value >= 1 else f"{value:.3f} h"


def share(value: float) -> str:
    """
    >>> share(0.1234), share(0.00001)
    ('12.3 %', '0.0 %')
    """
    return f"{100 * value:.1f} %"
