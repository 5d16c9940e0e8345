#!/usr/bin/env bash
# Records a weight, reads it back, and asks for a week of steps. Needs ALMANAC, TOKEN and PERSON.
set -euo pipefail

almanac() { curl -sS --fail-with-body -H "Authorization: Bearer $TOKEN" "$@"; }

# With an id of its own it counts once, however often it is sent. Any unit of mass will do.
almanac "$ALMANAC/ingest/v1/record/Weight" -H 'Content-Type: application/json' \
  -d '{"uuid": "01970000-0000-7000-8000-0000000000c1", "start_date": "2024-06-12T07:00:00Z", "value": 74, "unit": "kg"}'
echo

almanac "$ALMANAC/data/v0/$PERSON/metric_samples?metric=Weight&start_time=2024-06-12&end_time=2024-06-13&output=csv&columns=start_date,value,unit"

# Days of a zone; two devices that counted the same walk count once.
almanac "$ALMANAC/data/v0/$PERSON/metric_time_series?metric=StepCount&start_time=2024-06-03&end_time=2024-06-10&samprate=1d&output=csv"
