"""Settings that are valid or stop start-up: the only place in the house that reads the environment.

A program asks once, `Settings.from_environment()`, and hands the value on; nothing below looks at `os.environ`. Every
number must be positive, every duration at most thirty days; a value that is not raises `SettingsError`, which names the
environment variable to change. A test or a notebook builds `Settings(...)` by hand and is held to the same rules.

| variable | means | default |
|---|---|---|
| `ROWLEASE_DATABASE_URL`, else `DATABASE_URL` | where PostgreSQL is | PG* variables, else the embedded server |
| `ROWLEASE_DATA_FOLDER` | embedded server and store | `$XDG_DATA_HOME/rowlease`; as root `/var/lib/rowlease` |
| `ROWLEASE_STORE_FOLDER` | workbooks by content hash, a folder or the URL of a bucket | `store` in the data folder |
| `ROWLEASE_FORMS_FOLDER` | forms by name | `forms` in the working directory |
| `ROWLEASE_INBOX` | the folder that is watched for workbooks | `inbox` in the working directory |
| `ROWLEASE_INBOX_SETTLE_S` | how long a file must stand unchanged before it is taken | 2 |
| `ROWLEASE_CREATE_TABLES` | `yes`: unattended imports create a form's missing table | no |
| `ROWLEASE_PRIVATE_ADDRESSES` | `yes`: requests may go to private and local addresses | no |
| `ROWLEASE_SECRET_...` | secrets that headers name: `{{secret.NAME}}`; read when they are used | |
| `ROWLEASE_PASS_S` | how long a pass of an orchestrator claims new jobs, seconds | 600 |
| `ROWLEASE_KEEP_FAULTS_DAYS`, `_KEEP_WORKBOOKS_DAYS` | retention of faults and of the store's workbooks | 90, 30 |
| `ROWLEASE_KEEP_FINISHED_DAYS` | retention of timers, durable runs and messages that ended well | 30 |
| `ROWLEASE_TIME_ZONE` | zone in which schedules are meant | UTC |
| `ROWLEASE_IMPORTS_BATCH_ROWS` | rows per batch | 10,000 |
| `ROWLEASE_IMPORTS_POLL_S`, `_START_DELAY_S` | rhythm of the worker, seconds | 5, 5 |
| `ROWLEASE_IMPORTS_BATCH` | most jobs per pass | 5 |
| `ROWLEASE_IMPORTS_LEASE_S`, `_MAX_ATTEMPTS`, `_RETRY_DELAY_S` | the lease | 300, 5, 30 |
| `ROWLEASE_TIMERS_...` (the same six) | timers | 5, 5, 20, 60, 5, 30 |
| `ROWLEASE_TASKS_...` (the same six) | tasks; batch: the most tiny runs claimed at once | 5, 5, 250, 60, 5, 30 |
| `ROWLEASE_LIMIT_...` (`_CELLS` and so on) | what a workbook may ask for | see `importer.excel.Limits` |
| `ROWLEASE_SCANNER` | `off`: read plain sheets in Python although the compiled scanner is there | `auto` |

Why root has a folder of its own: as root the embedded server runs as a user it creates, and every parent of its data
directory is opened for reading and entering (o+rx). A home folder should not be opened so.

libpq reads the PG* variables itself. Here they only decide *whether* they name a database; the two that the connection
must not overwrite (`PGOPTIONS`, `PGCONNECT_TIMEOUT`) are kept.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from importer.errors import SettingsError

#: Any of these set means: the user names a database the way libpq's programs do.
NAMES_A_DATABASE = ("PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGUSER", "PGSERVICE")

#: PostgreSQL takes timeouts as 32-bit milliseconds (24 days); no duration of ours needs more.
LONGEST = timedelta(days=30)


@dataclass(frozen=True, kw_only=True)
class Rhythm:
    """How a kind of work is polled, leased and repeated."""

    #: Time between two looks at the table when nothing wakes the worker.
    poll: timedelta = timedelta(seconds=5)
    #: Time a worker waits after its start before its first look.
    start_delay: timedelta = timedelta(seconds=5)
    #: The most rows per pass.
    batch: int = 5
    #: How long a lease lasts unless renewed.
    lease: timedelta = timedelta(seconds=300)
    #: Crashes and errors after which a row is failed.
    max_attempts: int = 5
    #: Time until a row that met an error is due again.
    retry_delay: timedelta = timedelta(seconds=30)


IMPORTS = Rhythm()
TIMERS = Rhythm(batch=20, lease=timedelta(seconds=60))
TASKS = Rhythm(batch=250, lease=timedelta(seconds=60))


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that can be set, checked at construction.

    Raises `SettingsError` when a number is not positive or a duration is longer than thirty days.
    """

    #: A URL or conninfo; None: the PG* variables when they name a database, else the embedded server.
    database_url: str | None = field(default=None, repr=False)
    #: The PG* variables name a database.
    libpq: bool = False
    #: The user's PGOPTIONS; joined with ours, never replaced by them.
    libpq_options: str = ""
    #: The user set PGCONNECT_TIMEOUT, which then stands.
    libpq_connect_timeout: bool = False
    #: Folder of the embedded server and, unless set otherwise, of the store.
    data_folder: Path = field(default_factory=lambda: _default_data_folder({}))
    #: Folder of workbooks by content hash, or a bucket's URL; None: `store` in the data folder (read it from `store`).
    store_folder: Path | str | None = None
    #: Folder where a form is found by its name.
    forms_folder: Path = Path("forms")
    #: Folder that is watched for workbooks; a text is the URL of a bucket.
    inbox: Path | str = Path("inbox")
    #: How long a file of the inbox must stand unchanged before it is taken.
    inbox_settle: timedelta = timedelta(seconds=2)
    #: Imports that nobody attends create a missing table.
    create_tables: bool = False
    #: Requests to outside may go to private and local addresses.
    private_addresses: bool = False
    #: How long a pass of an orchestrator claims new jobs.
    pass_limit: timedelta = timedelta(minutes=10)
    #: Days after the end of a job for which its faults are kept.
    keep_faults_days: int = 90
    #: Days after its last job's end for which a workbook stays in the store.
    keep_workbooks_days: int = 30
    #: Days for which timers, durable runs and messages that ended well are kept.
    keep_finished_days: int = 30
    #: The zone in which schedules are meant, by its IANA name.
    time_zone: str = "UTC"
    #: Rows per batch, that is per transaction, of an import.
    batch_rows: int = 10_000
    #: Rhythm of imports.
    imports: Rhythm = IMPORTS
    #: Rhythm of timers.
    timers: Rhythm = TIMERS
    #: Rhythm of durable tasks; attempts and delay are those of a task that names no others.
    tasks: Rhythm = TASKS
    #: Limits of a workbook that differ from the defaults, by the names of `importer.excel.Limits`.
    limits: Mapping[str, int] = field(default_factory=dict)
    #: Use the compiled scanner where it was built.
    compiled_scanner: bool = True

    def __post_init__(self) -> None:
        """Refuse what cannot be used, by the name of its environment variable."""
        _require_positive("ROWLEASE_IMPORTS_BATCH_ROWS", self.batch_rows)
        _require_positive("ROWLEASE_INBOX_SETTLE_S", self.inbox_settle)
        _require_positive("ROWLEASE_PASS_S", self.pass_limit)
        _require_positive("ROWLEASE_KEEP_FAULTS_DAYS", self.keep_faults_days)
        _require_positive("ROWLEASE_KEEP_WORKBOOKS_DAYS", self.keep_workbooks_days)
        _require_positive("ROWLEASE_KEEP_FINISHED_DAYS", self.keep_finished_days)
        _require_zone("ROWLEASE_TIME_ZONE", self.time_zone)
        for name, limit in self.limits.items():
            _require_positive(f"{_LIMIT}{name.upper()}", limit)
        for section, rhythm in (("IMPORTS", self.imports), ("TIMERS", self.timers), ("TASKS", self.tasks)):
            for name, variable in _RHYTHM_VARIABLES.items():
                _require_positive(f"ROWLEASE_{section}_{variable}", getattr(rhythm, name))

    @property
    def store(self) -> Path | str:
        """The folder of the store, or the URL of its bucket, set or by default."""
        return self.store_folder or self.data_folder / "store"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Read the settings from the environment (or from a mapping that stands for it).

        An empty variable counts as not set. Raises `SettingsError` naming the variable that cannot be used.
        """
        source = os.environ if environment is None else environment
        given = {name: value for name, value in source.items() if value.strip()}
        data_folder = _folder(given, "ROWLEASE_DATA_FOLDER", _default_data_folder(given))
        return cls(
            database_url=given.get("ROWLEASE_DATABASE_URL", given.get("DATABASE_URL")),
            libpq=any(name in given for name in NAMES_A_DATABASE),
            libpq_options=given.get("PGOPTIONS", ""),
            libpq_connect_timeout="PGCONNECT_TIMEOUT" in given,
            data_folder=data_folder,
            store_folder=_place(given, "ROWLEASE_STORE_FOLDER", data_folder / "store"),
            forms_folder=_folder(given, "ROWLEASE_FORMS_FOLDER", Path("forms").absolute()),
            inbox=_place(given, "ROWLEASE_INBOX", Path("inbox").absolute()),
            inbox_settle=_duration(given, "ROWLEASE_INBOX_SETTLE_S", timedelta(seconds=2)),
            create_tables=_truth(given, "ROWLEASE_CREATE_TABLES", default=False),
            private_addresses=_truth(given, "ROWLEASE_PRIVATE_ADDRESSES", default=False),
            pass_limit=_duration(given, "ROWLEASE_PASS_S", timedelta(minutes=10)),
            keep_faults_days=_count(given, "ROWLEASE_KEEP_FAULTS_DAYS", 90),
            keep_workbooks_days=_count(given, "ROWLEASE_KEEP_WORKBOOKS_DAYS", 30),
            keep_finished_days=_count(given, "ROWLEASE_KEEP_FINISHED_DAYS", 30),
            time_zone=given.get("ROWLEASE_TIME_ZONE", "UTC"),
            batch_rows=_count(given, "ROWLEASE_IMPORTS_BATCH_ROWS", 10_000),
            imports=_rhythm(given, "IMPORTS", IMPORTS),
            timers=_rhythm(given, "TIMERS", TIMERS),
            tasks=_rhythm(given, "TASKS", TASKS),
            limits=_limits(given),
            compiled_scanner=_is_on(given, "ROWLEASE_SCANNER"),
        )


def secret(name: str, environment: Mapping[str, str] | None = None) -> str:
    """Read a secret that is named and never stored: the variable `ROWLEASE_SECRET_{name}`.

    Raises `SettingsError` when it is not set.
    """
    variable = "ROWLEASE_SECRET_" + name.upper()
    value = (os.environ if environment is None else environment).get(variable, "")
    if not value:
        raise SettingsError(variable, "this secret is asked for and not set")
    return value


#: How yes and no may be written.
_TRUTHS = {"yes": True, "true": True, "on": True, "1": True, "no": False, "false": False, "off": False, "0": False}

#: Field of a rhythm -> the end of its environment variable.
_RHYTHM_VARIABLES = {
    "poll": "POLL_S",
    "start_delay": "START_DELAY_S",
    "batch": "BATCH",
    "lease": "LEASE_S",
    "max_attempts": "MAX_ATTEMPTS",
    "retry_delay": "RETRY_DELAY_S",
}


_LIMIT = "ROWLEASE_LIMIT_"


def _limits(given: Mapping[str, str]) -> dict[str, int]:
    return {name.removeprefix(_LIMIT).lower(): _count(given, name, 0) for name in given if name.startswith(_LIMIT)}


def _is_on(given: Mapping[str, str], setting: str) -> bool:
    word = given.get(setting, "auto").strip().lower()
    if word not in {"auto", "off"}:
        raise SettingsError(setting, f"{given[setting]!r} is neither auto nor off")
    return word == "auto"


def _rhythm(given: Mapping[str, str], section: str, default: Rhythm) -> Rhythm:
    prefix = f"ROWLEASE_{section}_"
    return Rhythm(
        poll=_duration(given, prefix + "POLL_S", default.poll),
        start_delay=_duration(given, prefix + "START_DELAY_S", default.start_delay),
        batch=_count(given, prefix + "BATCH", default.batch),
        lease=_duration(given, prefix + "LEASE_S", default.lease),
        max_attempts=_count(given, prefix + "MAX_ATTEMPTS", default.max_attempts),
        retry_delay=_duration(given, prefix + "RETRY_DELAY_S", default.retry_delay),
    )


def _count(given: Mapping[str, str], setting: str, default: int) -> int:
    if setting not in given:
        return default
    try:
        return int(given[setting])
    except ValueError as error:
        raise SettingsError(setting, f"{given[setting]!r} is not a whole number") from error


def _truth(given: Mapping[str, str], setting: str, *, default: bool) -> bool:
    if setting not in given:
        return default
    word = given[setting].strip().lower()
    if word not in _TRUTHS:
        raise SettingsError(setting, f"{given[setting]!r} is neither yes nor no")
    return _TRUTHS[word]


def _duration(given: Mapping[str, str], setting: str, default: timedelta) -> timedelta:
    if setting not in given:
        return default
    try:
        seconds = float(given[setting])
    except ValueError as error:
        raise SettingsError(setting, f"{given[setting]!r} is not a number of seconds") from error
    if not math.isfinite(seconds) or seconds > LONGEST.total_seconds():
        raise SettingsError(setting, f"{given[setting]} seconds is longer than {LONGEST.days} days")
    return timedelta(seconds=max(seconds, -1))


def _folder(given: Mapping[str, str], setting: str, default: Path) -> Path:
    return Path(given[setting]).expanduser().absolute() if setting in given else default


def _place(given: Mapping[str, str], setting: str, default: Path) -> Path | str:
    """A folder, or the URL of a bucket as it is."""
    return given[setting] if "://" in given.get(setting, "") else _folder(given, setting, default)


def _default_data_folder(given: Mapping[str, str]) -> Path:
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        return Path("/var/lib/rowlease")
    home = given.get("XDG_DATA_HOME")
    return Path(home) / "rowlease" if home else Path.home() / ".local" / "share" / "rowlease"


def _require_positive(setting: str, value: float | timedelta) -> None:
    if isinstance(value, timedelta):
        if value > LONGEST:
            raise SettingsError(setting, f"{value.total_seconds():g} seconds is longer than {LONGEST.days} days")
        value = value.total_seconds()
    if value <= 0:
        raise SettingsError(setting, f"{value:g} is not positive; it must be more than 0")


def _require_zone(setting: str, name: str) -> None:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise SettingsError(setting, f"{name!r} is no time zone; write a name like Europe/Berlin") from error
