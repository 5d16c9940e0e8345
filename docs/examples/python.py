#!/usr/bin/env python3
"""Records a weight, reads heart rates as a frame, and asks for a week of steps. Needs ALMANAC, TOKEN and PERSON, pandas, Polars and pyarrow."""

import json
import os
import urllib.request

import pandas
import polars

almanac, person = os.environ["ALMANAC"], os.environ["PERSON"]
headers = {"Authorization": f"Bearer {os.environ['TOKEN']}"}


def post(path, body):
    """What is answered to a JSON document."""
    request = urllib.request.Request(almanac + path, data=json.dumps(body).encode(), headers=headers | {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


# With an id of its own it counts once, however often it is sent. Any unit of mass will do.
post("/ingest/v1/record/Weight", {"uuid": "01970000-0000-7000-8000-0000000000c2", "start_date": "2024-06-13T07:00:00Z", "value": 74, "unit": "kg"})

# A whole answer, as Parquet, with the columns that are wanted.
steps = pandas.read_parquet(
    f"{almanac}/data/v0/{person}/metric_time_series?metric=StepCount&start_time=2024-06-03&end_time=2024-06-10&samprate=1d&output=parquet",
    storage_options=headers,
)
print(steps.set_index("time").round(0))

# An answer that is kept for an hour: whoever reads it takes the parts that are needed, and needs no token.
question = f"/data/v0/{person}/metric_samples?metric=HeartRate&start_time=2024-06-03&end_time=2024-06-17"
frame = post("/data/v1/frames", {"question": question})
hearts = polars.scan_parquet(frame["url"])
by_day = hearts.group_by(polars.col("start_date").dt.date().alias("day")).agg(polars.col("value").min().alias("lowest"), polars.len())
print(by_day.sort("day").collect())
