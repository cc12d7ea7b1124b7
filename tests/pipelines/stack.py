"""Everything that `make dev` starts, as processes on free ports, and what tests ask of it and do to it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import psutil

from pipelines.dev import free_port
from tests.house.project import ROOT
from tests.waiting import until

SELECTOR = {"repositoryLocationName": "rowlease", "repositoryName": "__repository__"}

_RUNS = """query ($filter: RunsFilter) { runsOrError(filter: $filter, limit: 1000) { ... on Runs { results {
  runId jobName status tags { key value } startTime endTime creationTime } } } }"""
_EVENTS = """query ($id: ID!, $after: String) { logsForRun(runId: $id, afterCursor: $after) { ... on EventConnection {
  cursor hasMore events { ... on MessageEvent { message eventType timestamp } } } } }"""
_LAUNCH = """mutation ($params: ExecutionParams!) { launchRun(executionParams: $params) { __typename
  ... on LaunchRunSuccess { run { runId } } ... on PythonError { message }
  ... on RunConfigValidationInvalid { errors { message } } } }"""
_TERMINATE = "mutation ($id: String!) { terminateRun(runId: $id) { __typename } }"
_ASSET = """query ($key: AssetKeyInput!) { assetOrError(assetKey: $key) { ... on Asset { assetMaterializations {
  runId timestamp description metadataEntries { label __typename ... on IntMetadataEntry { intValue }
  ... on TextMetadataEntry { text } ... on TableMetadataEntry { table { records } } } } } } }"""
_CHECKS = """query ($key: AssetKeyInput!) { assetNodeOrError(assetKey: $key) { ... on AssetNode { assetChecksOrError {
  ... on AssetChecks { checks { name executionForLatestMaterialization { status } } } } } } }"""


T = TypeVar("T")


def find(ask: Callable[[], T | None], *, deadline_s: float = 60, every_s: float = 0.1) -> T:
    """Ask until there is an answer."""
    found = until(ask, deadline_s=deadline_s, every_s=every_s)
    assert found is not None
    return found


_RELOAD = """mutation { reloadRepositoryLocation(repositoryLocationName: "rowlease") { __typename } }"""
_ASSETS = "query { assetNodes { assetKey { path } } }"


class Stack:
    """`python -m pipelines.dev` with a database, an inbox and forms of its own."""

    def __init__(self, folder: Path, *, lease_s: float = 300, **environment: str) -> None:
        self.folder = folder
        self.inbox = folder / "inbox"
        self.forms = folder / "forms"
        self.port = free_port(3100)
        self.forms.mkdir(parents=True, exist_ok=True)
        self.log = folder / "log.txt"
        self._environment = {
            **{
                key: value for key, value in os.environ.items() if not key.startswith(("PG", "DATABASE_URL", "DAGSTER"))
            },
            "ROWLEASE_DATA_FOLDER": str(folder / "data"),
            "ROWLEASE_INBOX": str(self.inbox),
            "ROWLEASE_FORMS_FOLDER": str(self.forms),
            "ROWLEASE_IMPORTS_LEASE_S": str(lease_s),
            "ROWLEASE_IMPORTS_RETRY_DELAY_S": "1",
            **environment,
        }
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until its pages are there."""
        command = [sys.executable, "-m", "pipelines.dev", "--port", str(self.port), "--home", str(self.folder / "home")]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command, cwd=ROOT, env=self._environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        until(self._ready, deadline_s=180, every_s=0.2)

    def _ready(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log.read_text()
        return "Ctrl-C ends all of it." in self.log.read_text()

    @property
    def address(self) -> str:
        """Where its pages are."""
        return f"http://127.0.0.1:{self.port}"

    def family(self) -> list[psutil.Process]:
        """Every process that it started and that lives, itself included."""
        assert self.process is not None
        parent = psutil.Process(self.process.pid)
        return [parent, *parent.children(recursive=True)]

    def interrupt(self) -> int:
        """Press Ctrl-C and wait for the end; return the exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(60)

    def end(self) -> None:
        """End it if it still runs, however."""
        if self.process is not None and self.process.poll() is None:
            family = self.family()
            try:
                self.interrupt()
            except subprocess.TimeoutExpired:
                for each in family:
                    if each.is_running():
                        each.kill()

    def child(self, *words: str) -> psutil.Process:
        """The process whose command has these words."""
        return find(lambda: self._child(words))

    def _child(self, words: tuple[str, ...]) -> psutil.Process | None:
        for each in self.family():
            try:
                command = " ".join(each.cmdline())
            except psutil.Error:
                continue
            if all(word in command for word in words):
                return each
        return None

    def ask(self, query: str, **variables: object) -> dict[str, Any]:
        """Ask the pages' GraphQL."""
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(  # noqa: S310 - our own address
            f"{self.address}/graphql", data=body, headers={"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            found: dict[str, Any] = json.load(answer)
        assert "errors" not in found, found["errors"]
        return found["data"]  # type: ignore[no-any-return]

    def runs(self, **filters: object) -> list[dict[str, Any]]:
        """Return runs, newest first."""
        return self.ask(_RUNS, filter=filters)["runsOrError"]["results"]  # type: ignore[no-any-return]

    def run(self, run_id: str) -> dict[str, Any]:
        """Return one run."""
        return self.runs(runIds=[run_id])[0]

    def launch(self, job: str, config: Mapping[str, object]) -> str:
        """Launch an asset job and return the run's id."""
        params = {"selector": {**SELECTOR, "jobName": job}, "runConfigData": dict(config)}
        launched = self.ask(_LAUNCH, params=params)["launchRun"]
        assert launched["__typename"] == "LaunchRunSuccess", launched
        return str(launched["run"]["runId"])

    def import_workbook(self, form: str, file: str, **options: object) -> str:
        """Launch import_workbook as the launchpad does."""
        config = {"form": form, "file": file, **options}
        return self.launch("import_workbook", {"ops": {"import_one_workbook": {"config": config}}})

    def terminate(self, run_id: str) -> None:
        """Terminate a run as the page does."""
        self.ask(_TERMINATE, id=run_id)

    def ended(self, run_id: str, *, deadline_s: float = 120) -> dict[str, Any]:
        """Wait for the end of a run and return it."""
        return find(
            lambda: next((r for r in self.runs(runIds=[run_id]) if r["status"] in ENDED), None),
            deadline_s=deadline_s,
            every_s=0.2,
        )

    def nothing_at_work(self, *, deadline_s: float = 120) -> None:
        """Wait until no run is open."""
        until(lambda: not self.runs(statuses=AT_WORK), deadline_s=deadline_s, every_s=0.2)

    def events(self, run_id: str) -> list[dict[str, Any]]:
        """Return what a run wrote, oldest first."""
        found: list[dict[str, Any]] = []
        after = None
        while True:
            page = self.ask(_EVENTS, id=run_id, after=after)["logsForRun"]
            found += [event for event in page["events"] if event]
            if not page["hasMore"]:
                return found
            after = page["cursor"]

    def worker(self, run_id: str) -> psutil.Process:
        """The process that executes a run."""

        def of_log() -> psutil.Process | None:
            for event in self.events(run_id):
                found = re.search(r"process \(pid: (\d+)\)", event["message"])
                if found and event["eventType"] == "ENGINE_EVENT":
                    return psutil.Process(int(found[1]))
            return None

        return find(of_log)

    def materializations(self, asset: str) -> list[dict[str, Any]]:
        """Return the materializations of an asset, newest first, each with its metadata by name."""
        found = self.ask(_ASSET, key={"path": [asset]})["assetOrError"].get("assetMaterializations", [])
        return [{**each, "metadata": {e["label"]: _value(e) for e in each["metadataEntries"]}} for each in found]

    def reload(self) -> None:
        """Reload the code location as the page does."""
        self.ask(_RELOAD)

    def assets(self) -> list[str]:
        """Return the names of the assets there are."""
        return sorted(".".join(node["assetKey"]["path"]) for node in self.ask(_ASSETS)["assetNodes"])

    def checks(self, asset: str) -> dict[str, str]:
        """Return check -> status of its newest judgement."""
        found = self.ask(_CHECKS, key={"path": [asset]})["assetNodeOrError"]["assetChecksOrError"]["checks"]
        return {
            each["name"]: (each["executionForLatestMaterialization"] or {"status": "NONE"})["status"] for each in found
        }


ENDED = frozenset({"SUCCESS", "FAILURE", "CANCELED"})
AT_WORK = ["QUEUED", "NOT_STARTED", "STARTING", "STARTED", "CANCELING"]


def _value(entry: Mapping[str, Any]) -> object:
    match entry["__typename"]:
        case "IntMetadataEntry":
            return entry["intValue"]
        case "TextMetadataEntry":
            return entry["text"]
        case "TableMetadataEntry":
            return [json.loads(record) for record in entry["table"]["records"]]
        case other:
            return other


def gone(processes: list[psutil.Process], *, deadline_s: float = 30) -> list[psutil.Process]:
    """Wait for processes to be gone; return those that are not."""
    end = time.monotonic() + deadline_s
    living = processes
    while living and time.monotonic() < end:
        _, living = psutil.wait_procs(living, timeout=0.2)
        living = [each for each in living if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]
    return living
