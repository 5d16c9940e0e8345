"""Where somebody was: place-at, place-30d."""

from lines import Limit, Mark
from question import Question, ask
from spans import MAIN, MONTH, between, later

MOMENT = "2024-03-05T12:00:00Z"
UPDATE = {
    "timestamp": "2024-03-05T11:59:59Z",
    "latitude_degrees": 64.1466,
    "longitude_degrees": -21.9426,
    "horizontal_accuracy_meters": 12,
}


def place(table):
    return {
        "uuid": table["uuid"],
        "time": table["timestamp"],
        "latitude": table["latitude_degrees"],
        "longitude": table["longitude_degrees"],
        "accuracy": table["horizontal_accuracy_meters"],
    }


def slots(table):
    return {name: table[name] for name in ("slice_time", "lat", "long", "time", "distance_change_m")}


def place_at(bench):
    return ask(
        bench,
        Question(
            job="place-at",
            path=lambda step: f"/data/v0/{MAIN}/location_at_time?time={later([MOMENT], 7 * step)[0]}",
            form="json",
            columns=place,
            statement="place_at",
            parameters={"time": MOMENT},
            peers=["sqlite", "duckdb native", "fastapi"],
            data_type="PlatformLocationUpdate",
            record=UPDATE,
            gate=Mark("fastapi", 0.3),
            mark=Limit(0.5),
        ),
    )


def place_30d(bench):
    path = lambda step: f"/data/v0/{MAIN}/location_time_series?{between(MONTH, 60 * step)}&sample_rate=900"
    return ask(
        bench,
        Question(
            job="place-30d",
            path=path,
            form="json",
            columns=slots,
            statement="place_series",
            parameters={"start": MONTH[0], "end": MONTH[1]},
            peers=["duckdb native", "fastapi"],
            data_type="PlatformLocationUpdate",
            record=UPDATE,
            gate=Mark("fastapi", 0.2),
            mark=Limit(3),
        ),
    )
