"""What stands in the sample sessions: the files, logs and outputs of an invented project, `tidewatch`.

All of it is made up for this project. Long texts are made line by line from small tables, so that the same call
gives the same bytes everywhere.
"""

from collections import Counter
from collections.abc import Iterator

STATIONS = (
    "Brunshafen", "Norder Sand", "Kleine Fahrt", "Westerpriel", "Alte Mole", "Ruthenkoog", "Seegat", "Marschtor",
    "Hohe Balje", "Schillrinne", "Deichhorn", "Wattenberg", "Langes Eck", "Tonnenhof", "Flutgraben", "Windrose",
)  # fmt: skip

SOURCES = ("gauge", "model", "relay", "manual")


class Numbers:
    """Numbers that look like chance and are the same everywhere (a linear congruence; `random` may change)."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def below(self, bound: int) -> int:
        """Return the next number from 0 to below `bound`."""
        self._state = (self._state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return (self._state >> 33) % bound


def until(lines: Iterator[str], size_bytes: int) -> str:
    """Return as many lines as fit into so many bytes."""
    text = ""
    for line in lines:
        if len((text + line).encode()) > size_bytes:
            break
        text += line
    return text.rstrip("\n")


def import_log(size_bytes: int) -> str:
    """Return the log of a nightly import in which some readings come twice."""

    def lines() -> Iterator[str]:
        numbers = Numbers(7)
        second = 0
        for batch in range(1, 10_000):
            station = numbers.below(len(STATIONS))
            second += 3 + numbers.below(9)
            stamp = f"2026-03-02 {2 + second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
            code = f"TW{station:03d}"
            rows = 40 + numbers.below(200)
            source = SOURCES[numbers.below(len(SOURCES))]
            yield f"{stamp} INFO  import.batch  id={batch:05d} station={code} source={source} rows={rows}\n"
            if numbers.below(9) == 0:
                yield f"{stamp} WARN  import.retry  id={batch:05d} station={code} reason=lock_timeout attempt=2\n"
                yield f"{stamp} INFO  import.batch  id={batch:05d} station={code} source={source} rows={rows}\n"
            if numbers.below(40) == 0:
                place = f"{code} ({STATIONS[station]})"
                yield f"{stamp} WARN  import.gap    station={place} missing={numbers.below(90)}min\n"

    return until(lines(), size_bytes)


def log_counts(log: str) -> str:
    """Return what counting the lines of a log by kind prints."""
    lines = log.split("\n")
    kinds = Counter(line[20:38].rstrip() for line in lines)
    sizes = f"{len(lines):>7} {len(log.encode()):>7} logs/import.log"
    return "\n".join([sizes, *(f"{count:>7} {kind}" for kind, count in sorted(kinds.items()))])


def dry_run(size_bytes: int) -> str:
    """Return what a verbose dry run of the import prints."""

    def lines() -> Iterator[str]:
        numbers = Numbers(21)
        for batch in range(1, 10_000):
            station = numbers.below(len(STATIONS))
            key = f"TW{station:03d}/2026-03-{1 + numbers.below(28):02d}T{numbers.below(24):02d}:{numbers.below(6)}0Z"
            level = 200 + numbers.below(500)
            yield f"would insert reading {key} level={level}cm batch={batch:05d}\n"
            if numbers.below(11) == 0:
                yield f"would insert reading {key} level={level}cm batch={batch:05d}   <- second attempt\n"

    return until(lines(), size_bytes)


def query_plan(size_bytes: int) -> str:
    """Return a table dump with a query plan in front."""

    def lines() -> Iterator[str]:
        yield "Seq Scan on readings  (cost=0.00..48211.20 rows=1904112 width=44)\n"
        yield "  Filter: (batch_id = ANY ('{...}'::int[]))\n"
        yield "Execution Time: 1893.402 ms\n\n"
        yield " station | taken_at             | level_cm | batch_id | copies\n"
        yield "---------+----------------------+----------+----------+--------\n"
        numbers = Numbers(33)
        for batch in range(1, 10_000):
            station = numbers.below(len(STATIONS))
            when = f"2026-03-{1 + numbers.below(28):02d} {numbers.below(24):02d}:{numbers.below(6)}0:00+00"
            yield f" TW{station:03d}   | {when} | {200 + numbers.below(500):8} | {batch:8} | {2 + numbers.below(2):6}\n"

    return until(lines(), size_bytes)


def stations_csv(size_bytes: int) -> str:
    """Return a table of gauges, several at each station."""

    def lines() -> Iterator[str]:
        yield "code,station,gauge,lat,lon,datum_cm,since\n"
        numbers = Numbers(55)
        for gauge in range(10_000):
            station = gauge % len(STATIONS)
            lat, lon = f"53.{numbers.below(9000) + 1000}", f"8.{numbers.below(9000) + 1000}"
            datum, since = 480 + numbers.below(60), 1961 + numbers.below(60)
            yield f"TW{station:03d},{STATIONS[station]},{gauge // len(STATIONS)},{lat},{lon},{datum},{since}\n"

    return until(lines(), size_bytes)


IMPORTER = '''\
"""Takes readings from the stations' drop folder into the store, a batch at a time."""

import logging
import time

from tidewatch.store import Locked, Store

log = logging.getLogger("tidewatch.import")

ATTEMPTS = 3
PAUSE_S = 0.5


def import_batch(store: Store, batch_id: int, readings: list[dict]) -> int:
    """Write one batch and return how many readings were written."""
    written = 0
    for attempt in range(1, ATTEMPTS + 1):
        try:
            for reading in readings:
                store.insert(reading["station"], reading["taken_at"], reading["level_cm"], batch_id)
                written += 1
            return written
        except Locked:
            log.warning("import.retry id=%05d reason=lock_timeout attempt=%d", batch_id, attempt + 1)
            time.sleep(PAUSE_S)
    raise RuntimeError(f"batch {batch_id}: still locked after {ATTEMPTS} attempts")
'''

STORE = '''\
"""Readings in a database; one connection, opened when first needed."""

import sqlite3

SCHEMA = """
create table if not exists readings (
    station text not null,
    taken_at text not null,
    level_cm integer not null,
    batch_id integer not null
);
create index if not exists readings_by_station on readings (station, taken_at);
"""


class Locked(Exception):
    """Somebody else holds the write lock."""


class Store:
    def __init__(self, path: str) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None

    def insert(self, station: str, taken_at: str, level_cm: int, batch_id: int) -> None:
        try:
            self.connection.execute(
                "insert into readings values (?, ?, ?, ?)", (station, taken_at, level_cm, batch_id)
            )
            self.connection.commit()
        except sqlite3.OperationalError as error:
            raise Locked(str(error)) from error

    @property
    def connection(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = sqlite3.connect(self._path, timeout=2)
            self._connection.executescript(SCHEMA)
        return self._connection
'''

TEST_IMPORT = '''\
from tidewatch.importer import import_batch
from tidewatch.store import Locked, Store


class LocksOnce(Store):
    """Refuses the third insert once, as a busy database does."""

    def __init__(self, path):
        super().__init__(path)
        self.calls = 0

    def insert(self, *reading):
        self.calls += 1
        if self.calls == 3:
            raise Locked("database is locked")
        super().insert(*reading)


def test_a_retry_writes_no_reading_twice(tmp_path):
    store = LocksOnce(str(tmp_path / "readings.db"))
    readings = [{"station": "TW001", "taken_at": f"2026-03-02T02:{m}0Z", "level_cm": 312} for m in range(5)]
    assert import_batch(store, 1, readings) == 5
    assert store.connection.execute("select count(*) from readings").fetchone() == (5,)
'''

FAILING = """\
=================================== FAILURES ===================================
_____________________ test_a_retry_writes_no_reading_twice _____________________

    def test_a_retry_writes_no_reading_twice(tmp_path):
        store = LocksOnce(str(tmp_path / "readings.db"))
>       assert import_batch(store, 1, readings) == 5
E       assert 7 == 5

tests/test_import.py:25: AssertionError
------------------------------ Captured log call -------------------------------
WARNING  tidewatch.import:importer.py:25 import.retry id=00001 reason=lock_timeout attempt=2
=========================== short test summary info ============================
FAILED tests/test_import.py::test_a_retry_writes_no_reading_twice - assert 7 == 5
1 failed, 41 passed in 2.31s"""

PASSING = """\
..........................................                               [100%]
42 passed in 2.18s"""

MIGRATION = '''\
"""Take out the readings that a retried batch wrote twice, and make a second copy impossible."""

UP = """
delete from readings where rowid not in (
    select min(rowid) from readings group by station, taken_at, batch_id
);
create unique index readings_once on readings (station, taken_at, batch_id);
"""
'''


CHANGED_FILES = """\
 M tidewatch/importer.py
 M tidewatch/store.py
?? migrations/0017_once.py
?? tests/test_import.py"""

GAPS = """\
logs/0224.log: import.gap station=TW006 (Seegat) missing=84min
logs/0227.log: import.gap station=TW008 (Hohe Balje) missing=71min"""


def numbered(text: str) -> str:
    """Return the text with line numbers, as an agent's Read tool shows a file."""
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(text.rstrip("\n").split("\n"), start=1))
