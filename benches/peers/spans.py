"""Whom and which times the jobs ask about."""

from datetime import datetime, timedelta

import dataset

MAIN = dataset.PERSON
DAY = ("2024-03-05T00:00:00Z", "2024-03-06T00:00:00Z")
MONTH = ("2024-03-01T00:00:00Z", "2024-03-31T00:00:00Z")
YEAR = ("2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z")
# Whole days of New York.
TWO_YEARS = ("2023-01-01T05:00:00Z", "2025-01-01T05:00:00Z")
# Of the many, who have thirty days each.
THIRTY_DAYS = ("2023-01-01T00:00:00Z", "2023-01-31T00:00:00Z")
QUARTER = 900


def later(moments, seconds):
    """The same span, or moments, so many seconds later."""
    shifted = (datetime.fromisoformat(moment) + timedelta(seconds=seconds) for moment in moments)
    return tuple(moment.strftime("%Y-%m-%dT%H:%M:%SZ") for moment in shifted)


def between(span, seconds=0):
    """The parameters of a path."""
    start, end = later(span, seconds)
    return f"start_time={start}&end_time={end}"
