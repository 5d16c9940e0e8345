"""The jobs by their names, in the order in which they run. Those that store come last, because what they
store is asked for by the others."""

from jobs_dashboards import dashboards
from jobs_days import days_2y, steps_2y
from jobs_import import import_four
from jobs_places import place_30d, place_at
from jobs_post_batch import post_batch
from jobs_post_one import post_1
from jobs_raw import people, raw_1d, raw_1y
from jobs_series import group_1y, series_1d, series_1y, series_30d
from jobs_sleep import sleep_2y
from jobs_start import cold

READING = {
    "raw-1d": raw_1d,
    "raw-1y": raw_1y,
    "series-1d": series_1d,
    "series-30d": series_30d,
    "series-1y": series_1y,
    "group-1y": group_1y,
    "days-2y": days_2y,
    "steps-2y": steps_2y,
    "sleep-2y": sleep_2y,
    "place-at": place_at,
    "place-30d": place_30d,
    "dashboards": dashboards,
    "people": people,
    "cold": cold,
}
STORING = {
    "post-1": post_1,
    "post-batch": post_batch,
    "import-four": import_four,
}
JOBS = READING | STORING
