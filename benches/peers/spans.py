"""Whom and which times the jobs ask about."""

import dataset

MAIN = dataset.PERSON
DAY = ("2024-03-05T00:00:00Z", "2024-03-06T00:00:00Z")
MONTH = ("2024-03-01T00:00:00Z", "2024-03-31T00:00:00Z")
YEAR = ("2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z")
# Whole days of New York.
TWO_YEARS = ("2023-01-01T05:00:00Z", "2025-01-01T05:00:00Z")
# Of the many, who have thirty days each.
THIRTY_DAYS = ("2023-01-01T00:00:00Z", "2023-01-31T00:00:00Z")
