"""Settings are valid or stop start-up, and say which variable to change."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from importer.errors import SettingsError
from importer.settings import Rhythm, Settings

COUNTS = [
    "ROWLEASE_KEEP_FAULTS_DAYS",
    "ROWLEASE_KEEP_WORKBOOKS_DAYS",
    "ROWLEASE_KEEP_FINISHED_DAYS",
    "ROWLEASE_IMPORTS_BATCH_ROWS",
    "ROWLEASE_IMPORTS_BATCH",
    "ROWLEASE_IMPORTS_MAX_ATTEMPTS",
    "ROWLEASE_TIMERS_BATCH",
    "ROWLEASE_TIMERS_MAX_ATTEMPTS",
]
DURATIONS = [
    f"ROWLEASE_{kind}_{name}"
    for kind in ("IMPORTS", "TIMERS")
    for name in ("POLL_S", "START_DELAY_S", "LEASE_S", "RETRY_DELAY_S")
] + ["ROWLEASE_INBOX_SETTLE_S", "ROWLEASE_PASS_S"]


def test_defaults() -> None:
    """Nothing set: the defaults of the house."""
    settings = Settings.from_environment({})

    assert settings.imports == Rhythm(
        poll=timedelta(seconds=5),
        start_delay=timedelta(seconds=5),
        batch=5,
        lease=timedelta(seconds=300),
        max_attempts=5,
        retry_delay=timedelta(seconds=30),
    )
    assert settings.timers == Rhythm(
        poll=timedelta(seconds=5),
        start_delay=timedelta(seconds=5),
        batch=20,
        lease=timedelta(seconds=60),
        max_attempts=5,
        retry_delay=timedelta(seconds=30),
    )
    assert settings.batch_rows == 10_000
    assert settings.database_url is None


@pytest.mark.parametrize("setting", [*COUNTS, *DURATIONS])
@pytest.mark.parametrize("value", ["0", "-1"])
def test_not_positive(setting: str, value: str) -> None:
    """A number that is not positive stops start-up and names the setting."""
    with pytest.raises(SettingsError, match="must be more than 0") as caught:
        Settings.from_environment({setting: value})

    assert caught.value.setting == setting
    assert setting in str(caught.value)


@pytest.mark.parametrize("setting", [*COUNTS, *DURATIONS])
@pytest.mark.parametrize("value", ["soon", "1e", "5 s"])
def test_no_number(setting: str, value: str) -> None:
    """Text where a number belongs is refused and quoted."""
    with pytest.raises(SettingsError, match=f"{value!r} is not a") as caught:
        Settings.from_environment({setting: value})

    assert caught.value.setting == setting


@pytest.mark.parametrize("setting", DURATIONS)
@pytest.mark.parametrize("value", ["inf", "nan", "1e300", "2592001"])
def test_too_long(setting: str, value: str) -> None:
    """A duration that PostgreSQL could not take as a timeout is refused."""
    with pytest.raises(SettingsError, match="longer than 30 days") as caught:
        Settings.from_environment({setting: value})

    assert caught.value.setting == setting


def test_made_by_hand() -> None:
    """Settings made in a program are held to the same rules."""
    with pytest.raises(SettingsError) as caught:
        Settings(timers=Rhythm(lease=timedelta(0)))

    assert caught.value.setting == "ROWLEASE_TIMERS_LEASE_S"


def test_read() -> None:
    """Every number is read from its variable, fractions of a second included."""
    settings = Settings.from_environment(
        {
            "ROWLEASE_IMPORTS_LEASE_S": "1.5",
            "ROWLEASE_IMPORTS_BATCH_ROWS": "7",
            "ROWLEASE_TIMERS_MAX_ATTEMPTS": "2",
            "ROWLEASE_TIMERS_POLL_S": " ",
        }
    )

    assert settings.imports.lease == timedelta(seconds=1.5)
    assert settings.batch_rows == 7
    assert settings.timers.max_attempts == 2
    assert settings.timers.poll == timedelta(seconds=5)


@pytest.mark.parametrize(
    ("environment", "url", "libpq"),
    [
        ({"DATABASE_URL": "a", "PGHOST": "h"}, "a", True),
        ({"DATABASE_URL": "a", "ROWLEASE_DATABASE_URL": "b"}, "b", False),
        ({"PGSERVICE": "reports"}, None, True),
        ({"PGDATA": "/srv/pg", "PGOPTIONS": "-c work_mem=1MB"}, None, False),
        ({"DATABASE_URL": ""}, None, False),
    ],
)
def test_address(environment: dict[str, str], url: str | None, *, libpq: bool) -> None:
    """Our own variable comes before DATABASE_URL; a PG* variable counts only when it names a database."""
    settings = Settings.from_environment(environment)

    assert (settings.database_url, settings.libpq) == (url, libpq)


def test_folders(tmp_path: Path) -> None:
    """The store lies in the data folder unless it is set; folders are absolute."""
    settings = Settings.from_environment({"ROWLEASE_DATA_FOLDER": str(tmp_path)})
    moved = Settings.from_environment({"ROWLEASE_DATA_FOLDER": str(tmp_path), "ROWLEASE_STORE_FOLDER": "shelf"})

    assert settings.store == tmp_path / "store"
    assert moved.store == Path.cwd() / "shelf"
    assert settings.forms_folder.is_absolute()
    assert Path(settings.inbox).is_absolute()


def test_data_folder_of_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's data lie where the desktop standard says; root's outside any home."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    user = Settings.from_environment({"XDG_DATA_HOME": "/srv/ann"})
    monkeypatch.setattr("os.geteuid", lambda: 0)
    root = Settings.from_environment({"XDG_DATA_HOME": "/srv/ann"})

    assert user.data_folder == Path("/srv/ann/rowlease")
    assert root.data_folder == Path("/var/lib/rowlease")


def test_password_is_not_shown() -> None:
    """The address, which may hold a password, stays out of the settings' text."""
    assert "s3cret" not in repr(Settings.from_environment({"DATABASE_URL": "postgresql://ann:s3cret@h/d"}))


def test_a_bucket_is_named_by_its_url(tmp_path: Path) -> None:
    """The inbox is a folder, or a URL that is left as it is."""
    assert Settings.from_environment({"ROWLEASE_INBOX": "s3://bucket/in"}).inbox == "s3://bucket/in"
    assert Settings.from_environment({"ROWLEASE_INBOX": str(tmp_path)}).inbox == tmp_path


@pytest.mark.parametrize(("word", "truth"), [("yes", True), ("TRUE", True), ("1", True), ("no", False), ("off", False)])
def test_yes_and_no(word: str, truth: bool) -> None:
    """The words people write."""
    assert Settings.from_environment({"ROWLEASE_CREATE_TABLES": word}).create_tables is truth


@pytest.mark.parametrize(
    ("setting", "value"), [("ROWLEASE_CREATE_TABLES", "perhaps"), ("ROWLEASE_TIME_ZONE", "Europe/Nowhere")]
)
def test_a_word_that_means_nothing(setting: str, value: str) -> None:
    """It stops start-up and names the setting."""
    with pytest.raises(SettingsError, match=setting):
        Settings.from_environment({setting: value})
