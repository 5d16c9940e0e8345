"""The data of the comparison: one person with two years of everything, and many people with thirty days.
Deterministic for a scale.

Made as Arrow tables (from which the peers load) and, from the same tables, as JSON lines (which Almanac gets
over HTTP like everybody).
"""

import uuid
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

DAY = 86_400_000_000
START = 1_672_531_200_000_000  # 2023-01-01T00:00:00Z in microseconds
DAYS = 730
ACCURACY = 12.0  # of each place, in metres
PERSON = "5a3d1e00-0000-4000-8000-0000000000be"

SOURCE = {
    "name": "Sam's Watch",
    "version": "10.5",
    "productType": "Watch6,2",
    "operatingSystemVersion": "10.5.0",
    "sourceBundleIdentifier": "com.example.health.watch",
}
DEVICE = {
    "name": "Watch",
    "model": "Watch",
    "manufacturer": "Example",
    "hardwareVersion": "Watch6,2",
    "softwareVersion": "10.5",
}
PHONE = SOURCE | {
    "name": "Sam's Phone",
    "productType": "Phone14,5",
    "sourceBundleIdentifier": "com.example.health.phone",
}
APP = SOURCE | {"name": "Pillow Log", "productType": "App", "sourceBundleIdentifier": "com.example.pillowlog"}
# Which source counts where two measured the same time is decided by what they were measured with, so each
# source has a device of its own.
PHONE_DEVICE = DEVICE | {"name": "Phone", "model": "Phone", "hardwareVersion": "Phone14,5"}
APP_DEVICE = DEVICE | {"name": "Pillow Log", "model": "App", "hardwareVersion": "App"}
DEVICES = {
    source["productType"]: device
    for source, device in ((SOURCE, DEVICE), (PHONE, PHONE_DEVICE), (APP, APP_DEVICE))
}


@dataclass
class Series:
    """Records of one metric of one person, sorted by start."""

    data_type: str
    unit: str
    ids: np.ndarray  # 16 bytes each, in a void array
    starts: np.ndarray
    ends: np.ndarray
    values: np.ndarray
    sources: list  # what `source_of` points at
    source_of: np.ndarray

    def __len__(self):
        return len(self.starts)

    def table(self):
        """What the peers store: ids as text, times, value, unit, source and device as structs."""
        time = pa.timestamp("us", "UTC")
        texts = [str(uuid.UUID(bytes=raw)) for raw in map(bytes, self.ids)]
        structs = pa.array([self.sources[0]] * 0, pa.struct([(name, pa.string()) for name in SOURCE]))
        structs = pa.array(self.sources, structs.type).take(pa.array(self.source_of))
        device = pa.array([DEVICES[source["productType"]] for source in self.sources]).take(
            pa.array(self.source_of)
        )
        return pa.table(
            {
                "uuid": pa.array(texts),
                "start_date": pa.array(self.starts).cast(time),
                "end_date": pa.array(self.ends).cast(time),
                "value": pa.array(self.values),
                "unit": pa.DictionaryArray.from_arrays(
                    pa.array(np.zeros(len(self), np.int32)), pa.array([self.unit])
                ).cast(pa.string()),
                "source_properties": structs,
                "device_properties": device,
            }
        )

    def bodies(self, rows):
        """JSON lines, `rows` a body."""
        import json

        tails = [
            f',"unit":"{self.unit}","source_properties":{json.dumps(source)}'
            f',"device_properties":{json.dumps(DEVICES[source["productType"]])}}}\n'
            for source in self.sources
        ]
        for begin in range(0, len(self), rows):
            part = slice(begin, begin + rows)
            starts, ends = texts_of(self.starts[part]), texts_of(self.ends[part])
            lines = [
                f'{{"uuid":"{raw[:8]}-{raw[8:12]}-{raw[12:16]}-{raw[16:20]}-{raw[20:]}"'
                f',"start_date":"{start}","end_date":"{end}","value":{value:g}{tails[source]}'
                for raw, start, end, value, source in zip(
                    [bytes(raw).hex() for raw in self.ids[part]],
                    starts,
                    ends,
                    self.values[part].tolist(),
                    self.source_of[part].tolist(),
                )
            ]
            yield len(lines), "".join(lines).encode()


def texts_of(micros):
    """RFC 3339 with milliseconds."""
    return [f"{text}Z" for text in np.datetime_as_string(micros.astype("datetime64[us]"), unit="ms").tolist()]


def new_ids(random, count):
    """Version 4, as devices make them."""
    raw = random.integers(0, 256, (count, 16), dtype=np.uint8)
    raw[:, 6] = raw[:, 6] & 0x0F | 0x40
    raw[:, 8] = raw[:, 8] & 0x3F | 0x80
    return raw.view("V16").reshape(count)


def timed_ids(random, starts):
    """Like version 7: they begin with the time of the record, in milliseconds."""
    raw = random.integers(0, 256, (len(starts), 16), dtype=np.uint8)
    raw[:, :6] = (starts // 1000).astype(">u8").view(np.uint8).reshape(-1, 8)[:, 2:]
    raw[:, 6] = raw[:, 6] & 0x0F | 0x70
    raw[:, 8] = raw[:, 8] & 0x3F | 0x80
    return raw.view("V16").reshape(len(starts))


def moments(random, count, days):
    """Sorted, whole milliseconds."""
    return START + np.sort(random.integers(0, days * 86_400_000, count)) * 1000


def heart_rate(random, count, days=DAYS):
    starts = moments(random, count, days)
    hours = (starts % DAY) / 3_600_000_000
    values = np.round(68 + 12 * np.sin((hours - 9) / 12 * np.pi) + random.normal(0, 6, count)).clip(40, 190)
    return Series(
        "HeartRate",
        "bpm",
        new_ids(random, count),
        starts,
        starts,
        values,
        [SOURCE],
        np.zeros(count, np.int64),
    )


def beats_from(random, count, day, days, timed=False, source=None):
    """Heart rates from that day of the data on, with ids of one kind or the other, and of one source."""
    series = heart_rate(random, count, days)
    starts = series.starts + day * DAY
    ids = timed_ids(random, starts) if timed else series.ids
    return replace(series, ids=ids, starts=starts, ends=starts, sources=[source or SOURCE])


def intervals(random, data_type, unit, count, seconds, high, sources, days=DAYS):
    starts = moments(random, count, days)
    ends = starts + random.integers(seconds // 2, seconds, count) * 1_000_000
    values = random.integers(0, high, count).astype(np.float64)
    return Series(
        data_type,
        unit,
        new_ids(random, count),
        starts,
        ends,
        values,
        sources,
        random.integers(0, len(sources), count),
    )


@dataclass
class Places:
    """Location updates of one person, all of the same accuracy."""

    ids: np.ndarray
    times: np.ndarray
    latitudes: np.ndarray
    longitudes: np.ndarray
    data_type: str = "PlatformLocationUpdate"

    def __len__(self):
        return len(self.times)

    def table(self):
        return pa.table(
            {
                "uuid": pa.array([str(uuid.UUID(bytes=raw)) for raw in map(bytes, self.ids)]),
                "time": pa.array(self.times).cast(pa.timestamp("us", "UTC")),
                "latitude": pa.array(self.latitudes),
                "longitude": pa.array(self.longitudes),
                "accuracy": pa.array(np.full(len(self), ACCURACY)),
            }
        )

    def bodies(self, rows):
        for begin in range(0, len(self), rows):
            part = slice(begin, begin + rows)
            lines = [
                f'{{"uuid":"{uuid.UUID(hex=raw)}","timestamp":"{time}","latitude_degrees":{latitude:.6f}'
                f',"longitude_degrees":{longitude:.6f},"horizontal_accuracy_meters":{ACCURACY:g}}}\n'
                for raw, time, latitude, longitude in zip(
                    [bytes(raw).hex() for raw in self.ids[part]],
                    texts_of(self.times[part]),
                    self.latitudes[part].tolist(),
                    self.longitudes[part].tolist(),
                )
            ]
            yield len(lines), "".join(lines).encode()


def places(random, count):
    times = moments(random, count, DAYS)
    drift = np.cumsum(random.normal(0, 1e-5, (2, count)), axis=1).clip(-1, 1)
    # As many digits as are sent, so that distances come out the same everywhere.
    return Places(
        new_ids(random, count), times, np.round(64.1466 + drift[0], 6), np.round(-21.9426 + drift[1], 6)
    )


def by_turns(random, count, first_hour, hours):
    """Starts and ends of about `count` intervals of one source, which never overlap each other: `hours` of
    each day in equal parts, an interval in each."""
    each = max(1, round(count / DAYS))
    part = hours * 3_600_000 // each
    opens = (
        START // 1000
        + first_hour * 3_600_000
        + np.arange(DAYS)[:, None] * 86_400_000
        + np.arange(each) * part
    ).ravel()
    lengths = random.integers(part * 2 // 5, part + 1, len(opens))
    starts = opens + random.integers(0, part - lengths + 1)
    return starts * 1000, (starts + lengths) * 1000


def together(random, data_type, unit, sources, parts):
    """One series of what each source measured: `parts` holds (starts, ends, values) of each."""
    starts, ends, values = (np.concatenate(column) for column in zip(*parts))
    source_of = np.repeat(np.arange(len(parts)), [len(part[0]) for part in parts])
    order = np.argsort(starts, kind="stable")
    return Series(
        data_type,
        unit,
        new_ids(random, len(starts)),
        starts[order],
        ends[order],
        values[order].astype(np.float64),
        sources,
        source_of[order],
    )


def steps(random, count):
    """A watch and a phone, from early morning until some reach past midnight in New York; most of what the
    phone counts, the watch counts as well."""
    parts = []
    for share in (0.5, 0.5):
        starts, ends = by_turns(random, count * share, 10, 19)
        parts.append((starts, ends, random.integers(0, 600, len(starts))))
    return together(random, "StepCount", "steps", [SOURCE, PHONE], parts)


def energy(random, data_type, count, high):
    starts, ends = by_turns(random, count, 0, 24)
    return together(
        random,
        data_type,
        "cal",
        [SOURCE],
        [(starts, ends, np.round(random.uniform(0, high, len(starts)), 2))],
    )


def oxygen(random, count):
    starts = moments(random, count, DAYS)
    return Series(
        "BloodOxygenSaturation",
        "percent",
        new_ids(random, count),
        starts,
        starts,
        random.integers(93, 100, count).astype(np.float64),
        [SOURCE],
        np.zeros(count, np.int64),
    )


def sleep(random, count):
    """Nights as a watch and an app see them, each with stages of its own one after the other, and the time in
    bed of a phone."""
    nights, each = DAYS - 1, max(1, round(count / DAYS - 1) // 2)
    falls = START // 1000 + np.arange(nights) * 86_400_000 + random.integers(78_000_000, 90_000_000, nights)
    wakes = falls + random.integers(23_000_000, 31_000_000, nights)
    parts = []
    for stages in ([1, 3, 4, 5], [1, 2, 3, 5]):
        # The two do not agree on the minute, and the watch pauses now and then.
        edges = np.sort(
            random.integers((falls - 600_000)[:, None], (wakes + 600_000)[:, None], (nights, each + 1)),
            axis=1,
        )
        starts, ends = edges[:, :-1].ravel(), edges[:, 1:].ravel()
        kept = (ends > starts) & (random.random(len(starts)) > 0.05)
        parts.append((starts[kept] * 1000, ends[kept] * 1000, random.choice(stages, len(starts))[kept]))
    parts.append(((falls - 1_500_000) * 1000, (wakes + 900_000) * 1000, np.zeros(nights)))
    return together(random, "SleepStage", "stage", [SOURCE, APP, PHONE], parts)


def one_person(scale):
    """At scale 1: 8.0 M heart rates, 304 k steps of two sources, 657 k energy (active and basal), 41.5 k
    sleep segments of three sources, 1.4 M places, and 35 k oxygen saturations, without which there would not
    be five metrics to ask for together."""
    random = np.random.default_rng(20230101)
    many = lambda count: max(64, round(count * scale))
    return [
        heart_rate(random, many(8_000_000)),
        steps(random, many(304_000)),
        energy(random, "ActiveCaloriesBurned", many(131_400), 20),
        energy(random, "BasalCaloriesBurned", many(525_600), 5),
        oxygen(random, many(35_000)),
        sleep(random, many(41_500)),
        places(random, many(1_400_000)),
    ]


def person_id(number):
    return str(uuid.UUID(int=0x5A3D1E00_0000_4000_8001_000000000000 + number))


def small_person(number):
    """Thirty days of one of the many."""
    random = np.random.default_rng(number)
    return [
        heart_rate(random, 720, 30),
        intervals(random, "StepCount", "steps", 360, 300, 600, [SOURCE], 30),
        intervals(random, "SleepStage", "stage", 300, 1800, 6, [SOURCE], 30),
    ]


def answer_of(table):
    """What must be equal between two answers with the same rows: their number, the sum of values, and the
    ends of ids and starts."""
    ids, starts = (
        table["uuid"].cast(pa.string()),
        table["start_date"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()),
    )
    low, high = pc.min_max(ids).as_py().values()
    first, last = pc.min_max(starts).as_py().values()
    return table.num_rows, round(pc.sum(table["value"]).as_py() or 0, 6), low, high, first, last
