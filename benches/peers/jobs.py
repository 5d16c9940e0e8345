"""The jobs by their names, in the order in which they run: those that store come last, because what they store is asked for by the others."""

from jobs_raw import people, raw_1d, raw_1y
from jobs_start import cold
from jobs_writing import post_1, post_batch

JOBS = {
    "raw-1d": raw_1d,
    "raw-1y": raw_1y,
    "people": people,
    "cold": cold,
    "post-1": post_1,
    "post-batch": post_batch,
}
