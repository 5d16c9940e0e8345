#!/usr/bin/env python3
"""Makes the sample person: two weeks of an invented life in Lisbon, where the clock is put forward in summer, so that a day is not a day of UTC.

    data/make_sample.py           writes data/sample/<Type>.jsonl.gz, one record a line, ready to be posted to /ingest/v1/record/<Type>
    data/make_sample.py --check   compares them with what would be written, and fails when they differ

Nobody lived this: every number comes from the seed below. Needs nothing but Python, and only `Random.random`, whose sequence Python
promises to keep, so the same files come out everywhere.
"""

import gzip
import io
import json
import math
import sys
import uuid
from datetime import datetime, timedelta, timezone
from pathlib import Path
from random import Random

SAMPLE = Path(__file__).parent / "sample"
PERSON = uuid.UUID("5a3d1e00-0000-4000-8000-000000000001")
# What the clocks of Lisbon show in June.
SUMMER = timezone(timedelta(hours=1))
FIRST_DAY = datetime(2024, 6, 3, tzinfo=SUMMER)
DAYS = 14

WATCH = {
    "source_properties": {
        "name": "Sam's Watch",
        "version": "10.5",
        "productType": "Watch6,2",
        "operatingSystemVersion": "10.5.0",
        "sourceBundleIdentifier": "com.example.health.watch",
    },
    "device_properties": {
        "name": "Watch",
        "model": "Watch",
        "manufacturer": "Example",
        "hardwareVersion": "Watch6,2",
        "softwareVersion": "10.5",
    },
}
PHONE = {
    "source_properties": {
        "name": "Sam's Phone",
        "version": "17.5",
        "productType": "Phone14,5",
        "operatingSystemVersion": "17.5.0",
        "sourceBundleIdentifier": "com.example.health.phone",
    },
    "device_properties": {
        "name": "Phone",
        "model": "Phone",
        "manufacturer": "Example",
        "hardwareVersion": "Phone14,5",
        "softwareVersion": "17.5",
    },
}
SLEEP_APP = {
    "source_properties": {"name": "Pillow Log", "version": "4.2", "sourceBundleIdentifier": "com.example.pillowlog"},
}
SCALE = {
    "source_properties": {"name": "Bathroom Scale", "version": "2.1", "sourceBundleIdentifier": "com.example.scale"},
}

IN_BED, AWAKE, ASLEEP, LIGHT, DEEP, REM = range(6)

HOME = (38.71140, -9.13010)
OFFICE = (38.73340, -9.14510)
POOL = (38.74200, -9.13200)
TRAIL = (38.70700, -9.14560)


class Sample:
    """Records by type, with ids that are valid UUIDs of version 7 and yet pack well: type and ordinal instead of random bits."""

    def __init__(self):
        self.random = Random(20240603)
        self.records = {}

    def uniform(self, low, high):
        return low + (high - low) * self.random.random()

    def noise(self, size):
        """Roughly normal, from plain uniform numbers."""
        return size * (sum(self.random.random() for _ in range(6)) - 3) / 0.7071

    def new_id(self, data_type, at):
        rows = self.records.setdefault(data_type, [])
        milliseconds = round(at.timestamp() * 1000)
        kind = list(self.records).index(data_type)
        value = (milliseconds << 80) | (0x7 << 76) | (kind << 64) | (0b10 << 62) | len(rows)
        return str(uuid.UUID(int=value))

    def add(self, data_type, record):
        self.records[data_type].append(record)

    def metric(self, data_type, unit, start, end, value, source, **more):
        record_id = self.new_id(data_type, start)
        self.add(data_type, {"uuid": record_id, "start_date": text(start), "end_date": text(end), "value": value, "unit": unit, **more, **source})


def text(at):
    return at.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Day:
    """What happens when on one day: the plan that every sensor sees its own part of."""

    def __init__(self, sample, number):
        self.midnight = FIRST_DAY + timedelta(days=number)
        self.weekend = self.midnight.weekday() >= 5
        minutes = lambda hour, spread: timedelta(minutes=hour * 60 + round(sample.uniform(-spread, spread)))
        self.wake = self.midnight + minutes(8.2 if self.weekend else 6.8, 20)
        self.bed = self.midnight + minutes(23.4 if self.weekend else 22.7, 25)
        self.leave = self.wake + timedelta(minutes=55)
        self.back = self.midnight + minutes(17.1, 25)
        self.run = None
        if self.midnight.weekday() in (1, 3, 5):
            begin = self.midnight + minutes(18.2, 15)
            self.run = (begin, begin + timedelta(minutes=round(sample.uniform(32, 48))))

    def running(self, at):
        return self.run is not None and self.run[0] <= at < self.run[1]

    def walking(self, at):
        """Commutes and lunch."""
        if self.weekend:
            return self.midnight + timedelta(hours=11) <= at < self.midnight + timedelta(hours=12, minutes=10)
        stretches = ((self.leave, 24), (self.midnight + timedelta(hours=12, minutes=5), 18), (self.back, 25))
        return any(begin <= at < begin + timedelta(minutes=length) for begin, length in stretches)

    def asleep(self, at):
        return at < self.wake or at >= self.bed + timedelta(minutes=15)

    def at_office(self, at):
        return not self.weekend and self.leave + timedelta(minutes=24) <= at < self.back


def heart_rate(sample, day):
    at = day.midnight + timedelta(seconds=round(sample.uniform(5, 200)))
    while at < day.midnight + timedelta(days=1):
        hour = (at - day.midnight).total_seconds() / 3600
        if day.running(at):
            level, step = 148 + 9 * math.sin(hour * 7), 60
        elif day.walking(at):
            level, step = 96, 120
        elif day.asleep(at):
            level, step = 54 + 3 * math.sin(hour * 2.2), 300
        else:
            level, step = 71 + 5 * math.sin((hour - 8) / 16 * math.pi), 270
        sample.metric("HeartRate", "bpm", at, at, max(44, round(level + sample.noise(3.5))), WATCH)
        at += timedelta(seconds=round(step * sample.uniform(0.8, 1.2)))


def movement(sample, day):
    """Steps from the watch in five minute pieces, from the phone in pieces of its own that overlap them, and the energy that went with them."""
    at = day.wake
    while at < day.bed:
        if day.running(at):
            rate, energy = 162, 11.5
        elif day.walking(at):
            rate, energy = 104, 4.6
        else:
            rate, energy = (9 if sample.random.random() < 0.45 else 0), 0.5
        end = at + timedelta(minutes=5)
        steps = round(max(0, rate * 5 * sample.uniform(0.85, 1.1)))
        if steps:
            sample.metric("StepCount", "steps", at, end, steps, WATCH)
            if sample.random.random() < 0.7 and not day.running(at):
                shift = timedelta(seconds=round(sample.uniform(20, 140)))
                sample.metric("StepCount", "steps", at + shift, end + shift, round(steps * sample.uniform(0.75, 1.05)), PHONE)
        sample.metric("ActiveCaloriesBurned", "cal", at, end, round(energy * 5 * sample.uniform(0.8, 1.2), 1), WATCH)
        at = end


def night(sample, day):
    """The night that ends on this day: in bed from the phone, stages from the watch, one plain sleep from an app."""
    bed = day.midnight - timedelta(minutes=round(sample.uniform(40, 95)))
    up = day.wake + timedelta(minutes=round(sample.uniform(2, 12)))
    sample.metric("SleepStage", "stage", bed, up, IN_BED, PHONE)
    at = bed + timedelta(minutes=round(sample.uniform(8, 22)))
    sample.metric("SleepStage", "stage", at + timedelta(minutes=3), day.wake, ASLEEP, SLEEP_APP)
    cycle = 0
    while at < day.wake:
        deep = max(6, 34 - 8 * cycle)
        rem = 8 + 7 * cycle
        for stage, length in ((LIGHT, 22), (DEEP, deep), (LIGHT, 14), (REM, rem), (AWAKE, 3)):
            end = min(day.wake, at + timedelta(seconds=round(60 * length * sample.uniform(0.7, 1.3))))
            if end > at:
                sample.metric("SleepStage", "stage", at, end, stage, WATCH)
            at = end
        cycle += 1


def once_a_day(sample, day, number):
    morning = day.wake + timedelta(minutes=9)
    sample.metric("Weight", "lb", morning, morning, round(163.4 - 0.09 * number + sample.noise(0.5), 1), SCALE)
    resting = round(56.5 - 0.1 * number + sample.noise(0.9))
    sample.metric("RestingHeartRate", "bpm", day.midnight, day.midnight + timedelta(hours=23, minutes=59), resting, WATCH)
    for hour in (2, 5):
        at = day.midnight + timedelta(hours=hour, minutes=round(sample.uniform(0, 50)))
        sample.metric("HeartRateVariabilitySDNN", "ms", at, at, round(52 + sample.noise(7), 1), WATCH)


def workout(sample, day):
    if day.run is None:
        return
    begin, end = day.run
    seconds = (end - begin).total_seconds()
    distance = round(seconds / 60 / 9.4, 2)
    energy = round(seconds / 60 * 11.5, 1)
    heart = [row["value"] for row in sample.records["HeartRate"] if text(begin) <= row["start_date"] < text(end)]
    span = {"startDate": text(begin), "endDate": text(end)}
    statistics = {
        "ActiveCaloriesBurned": {"sum": energy, "unit": "cal", **span},
        "DistanceTraveledOnFoot": {"sum": distance, "unit": "mi", **span},
        "HeartRate": {"average": round(sum(heart) / len(heart), 1), "maximum": max(heart), "minimum": min(heart), "unit": "bpm", **span},
    }
    identity = sample.new_id("PlatformWorkout", begin)
    sample.add("PlatformWorkout", {
        "platform_workout_id": identity,
        "start_date": text(begin),
        "end_date": text(end),
        "duration": seconds,
        "has_undetermined_duration": False,
        "workout_activity_type": "running",
        "all_statistics": statistics,
        "device": WATCH["device_properties"],
        "source_revision": WATCH["source_properties"],
        "workout_activities": [{
            "uuid": identity[:-1] + "f",
            "startDate": text(begin),
            "endDate": text(end),
            "duration": seconds,
            "workoutConfiguration": {"activityType": "running", "locationType": "outdoor"},
            "allStatistics": statistics,
            "workoutEvents": [],
        }],
        "workout_events": [],
    })


def between(one, other, share):
    return tuple(a + (b - a) * share for a, b in zip(one, other))


def place(day, at):
    if day.running(at):
        share = (at - day.run[0]) / (day.run[1] - day.run[0])
        return between(HOME, TRAIL, 1 - abs(2 * share - 1)), 2.9
    if day.weekend:
        return HOME, 0.0
    for begin, start, end in ((day.leave, HOME, OFFICE), (day.back, OFFICE, HOME)):
        share = (at - begin) / timedelta(minutes=24)
        if 0 <= share < 1:
            return between(start, end, share), 1.6
    return (OFFICE if day.at_office(at) else HOME), 0.0


def location(sample, day):
    at = day.midnight + timedelta(seconds=round(sample.uniform(0, 300)))
    while at < day.midnight + timedelta(days=1):
        (latitude, longitude), speed = place(day, at)
        accuracy = round(sample.uniform(4, 12) if speed else sample.uniform(12, 40), 1)
        blur = accuracy * 2e-6
        sample.add("PlatformLocationUpdate", {
            "uuid": sample.new_id("PlatformLocationUpdate", at),
            "timestamp": text(at),
            "latitude_degrees": round(latitude + sample.noise(blur), 6),
            "longitude_degrees": round(longitude + sample.noise(blur), 6),
            "horizontal_accuracy_meters": accuracy,
            "vertical_accuracy_meters": 8.0,
            "altitude_meters": round(22 + sample.noise(3), 1),
            "speed": round(speed * sample.uniform(0.8, 1.2), 2) if speed else -1,
            "course_heading_degrees": -1,
            "source_is_simulated_by_software": False,
            "source_is_produced_by_accessory": False,
        })
        at += timedelta(seconds=round((60 if speed else 720) * sample.uniform(0.8, 1.2)))


def visits(sample, days):
    stays = []
    arrival, where = FIRST_DAY - timedelta(hours=5), HOME
    for day in days:
        if not day.weekend:
            stays += [(arrival, day.leave, HOME), (day.leave + timedelta(minutes=24), day.back, OFFICE)]
            arrival = day.back + timedelta(minutes=25)
        else:
            swim = day.midnight + timedelta(hours=14)
            stays += [(arrival, swim - timedelta(minutes=20), where), (swim, swim + timedelta(minutes=75), POOL)]
            arrival = swim + timedelta(minutes=95)
    stays.append((arrival, None, HOME))
    for arrival, departure, (latitude, longitude) in stays:
        sample.add("PlatformLocationVisit", {
            "uuid": sample.new_id("PlatformLocationVisit", arrival),
            "arrival_date": text(arrival),
            # Still there: what phones write for an end they do not know.
            "departure_date": text(departure) if departure else "4001-01-01T00:00:00Z",
            "latitude_degrees": latitude,
            "longitude_degrees": longitude,
            "horizontal_accuracy_meters": 25.0,
        })


def calendar(sample, days):
    inserted = FIRST_DAY - timedelta(days=1)
    calendar_id = sample.new_id("Calendar", inserted)
    sample.add("Calendar", {
        "calendar_id": calendar_id,
        "calendar_identifier": "4C1F2B9A-WORK",
        "calendar_name": "Work",
        "calendar_color": "#3366CC",
        "calendar_type": "caldav",
        "calendar_source_id": "9D0E7711-CALDAV",
        "calendar_source_name": "Example Cloud",
        "source_type": "caldav",
        "svc_source": "com.example.phone.calendar",
        "inserted_at": text(inserted),
        "is_immutable": False,
        "is_subscribed": False,
    })
    for day in days:
        if day.weekend:
            continue
        meetings = [("Stand-up", 9.5, 15), ("Focus time", 10, 90)]
        if day.midnight.weekday() == 0:
            meetings.append(("Planning", 13, 60))
        if day.midnight.weekday() == 3:
            meetings.append(("One to one with Jo", 14.5, 30))
        for title, hour, minutes in meetings:
            begin = day.midnight + timedelta(hours=hour)
            sample.add("CalendarEvent", {
                "calendar_event_id": sample.new_id("CalendarEvent", begin),
                "calendar_id": calendar_id,
                "start_date": text(begin),
                "end_date": text(begin + timedelta(minutes=minutes)),
                "title": title,
                "availability": "busy",
                "status": "confirmed",
                "has_alarms": False,
                "has_attendees": title != "Focus time",
                "has_notes": False,
                "has_recurrence_rules": True,
                "is_all_day": False,
                "is_detached": False,
                "time_zone": "Europe/Lisbon",
            })


def annotations(sample, day):
    coffee = day.wake + timedelta(minutes=round(sample.uniform(20, 45)))
    for at, note in ((coffee, "coffee"), (day.midnight + timedelta(hours=15, minutes=round(sample.uniform(0, 40))), "tea")):
        sample.add("MomentAnnotation", {
            "id": sample.new_id("MomentAnnotation", at),
            "recorded_at": text(at),
            "note": note,
            "tags": ["caffeine"],
            "sources": ["com.example.journal"],
        })
    evening = day.bed - timedelta(minutes=30)
    sample.add("NumericAnnotation", {
        "id": sample.new_id("NumericAnnotation", evening),
        "recorded_at": text(evening),
        "value": round(sample.uniform(1, 5)),
        "unit": "glasses",
        "note": "water today",
        "tags": ["drinks"],
        "sources": ["com.example.journal"],
    })


def make():
    """Records by type, in the order of their start."""
    sample = Sample()
    days = [Day(sample, number) for number in range(DAYS)]
    for number, day in enumerate(days):
        night(sample, day)
        heart_rate(sample, day)
        movement(sample, day)
        once_a_day(sample, day, number)
        workout(sample, day)
        location(sample, day)
        annotations(sample, day)
    visits(sample, days)
    calendar(sample, days)
    return sample.records


def packed(records):
    lines = "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records)
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=9, mtime=0) as file:
        file.write(lines.encode())
    return lines, out.getvalue()


def main():
    made = make()
    about = {
        "person": str(PERSON),
        "name": "Sam Sample",
        "start": text(FIRST_DAY),
        "end": text(FIRST_DAY + timedelta(days=DAYS)),
        "records": {data_type: len(records) for data_type, records in made.items()},
    }
    files = {"person.json": json.dumps(about, indent=2) + "\n"}
    blobs = {}
    for data_type, records in made.items():
        name = f"{data_type}.jsonl.gz"
        files[name], blobs[name] = packed(records)
    if sys.argv[1:] == ["--check"]:
        # Unpacked, since compressors differ in their bytes.
        there = {path.name: path for path in SAMPLE.iterdir()}
        wrong = sorted(set(there) ^ set(files))
        for name, path in there.items():
            data = path.read_bytes()
            data = gzip.decompress(data) if name.endswith(".gz") else data
            if name not in wrong and data.decode() != files[name]:
                wrong.append(name)
        if wrong:
            sys.exit(f"data/sample differs from what data/make_sample.py makes: {', '.join(wrong)}")
        print(f"data/sample is what data/make_sample.py makes: {sum(map(len, made.values()))} records of {len(made)} types")
        return
    SAMPLE.mkdir(exist_ok=True)
    for name, content in files.items():
        (SAMPLE / name).write_bytes(blobs.get(name, content.encode()))
    print(files["person.json"], end="")


main()
