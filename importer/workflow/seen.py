"""Workflows, instances and approvals as people see them: values read in one go, that show themselves."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from importer.db import Connection
from importer.display import duration, moment, table, text, text_table
from importer.errors import WorkflowNotFoundError
from importer.workflow.definition import Workflow
from importer.workflow.diagram import diagram
from importer.workflow.firing import ST, workflow_of

Status = Literal["running", "completed", "failed", "cancelled"]


@dataclass(frozen=True, kw_only=True)
class Wait:
    """What one token waits for."""

    instance: int
    token: int
    #: The node on which it stands.
    node: str
    #: timer approval import task join.
    kind: str
    since: dt.datetime
    #: When it goes on by itself: a timer's moment, an approval's limit.
    until: dt.datetime | None = None
    #: Who may answer an approval; nobody named: anybody.
    who: tuple[str, ...] = ()
    question: str | None = None
    approval: int | None = None
    job: int | None = None
    job_status: str | None = None
    #: The run of a durable task, and its status.
    run: int | None = None
    run_status: str | None = None
    #: Why it did not go on at its last try, if it was tried.
    problem: str | None = None

    def __str__(self) -> str:
        """Say it in a sentence."""
        match self.kind:
            case "timer":
                said = f"for {moment(self.until)}" if self.until else "for its timer, which is being fired"
            case "approval":
                who = ", ".join(self.who) or "anybody"
                limit = f", until {moment(self.until)}" if self.until else ""
                said = f"for an answer of {who} to {self.question!r} (approval {self.approval}){limit}"
            case "import":
                said = f"for the end of import job {self.job} ({self.job_status})"
            case "task":
                said = f"for the end of task run {self.run} ({self.run_status})"
            case _:
                said = "for the other branches of its fork"
        problem = f"; at its last try: {self.problem}" if self.problem else ""
        return f"{self.node} waits since {moment(self.since)} {said}{problem}"


@dataclass(frozen=True, kw_only=True)
class Step:
    """One line of the history of an instance."""

    at: dt.datetime
    node: str | None
    token: int | None
    #: started waits passed cancelled failed retried completed.
    what: str
    #: How long the token stood on the node, for `passed`.
    duration: dt.timedelta | None
    detail: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Instance:
    """One run of a workflow as it stood when it was read; moments are aware and in UTC."""

    id: int
    #: Name and version of its workflow.
    workflow: str
    version: int
    #: The starter's own name for it.
    key: str | None
    #: running completed failed cancelled.
    status: Status
    variables: Mapping[str, Any] = field(repr=False)
    #: Where and why it failed.
    failed_node: str | None
    last_error: str | None
    created_by: str
    created_at: dt.datetime
    finished_at: dt.datetime | None
    #: What its tokens wait for, while it runs.
    waits: tuple[Wait, ...] = ()
    #: What happened so far, oldest first (`im.workflow` fills it, lists do not).
    history: tuple[Step, ...] = field(default=(), repr=False)
    #: Its workflow, and the tokens on each node by status (as the history).
    definition: Workflow | None = field(default=None, repr=False)
    marked: Mapping[str, Mapping[str, int]] = field(default_factory=dict, repr=False)

    @property
    def ended(self) -> bool:
        """Whether it has come to its end."""
        return self.status != "running"

    def diagram(self) -> str:
        """Return its workflow as a mermaid diagram with the tokens marked."""
        of = self.definition
        if of is None:
            return ""
        return diagram(of.start, of.nodes, of.connections, self.marked, failed=self.failed_node)

    def history_rows(self) -> list[tuple[object, ...]]:
        """Return the history as rows: at, node, what, after, how."""
        return [(step.at, step.node, step.what, step.duration, told(step)) for step in self.history]

    def _repr_markdown_(self) -> str:
        head = f"**Workflow {markdown(self.workflow)} v{self.version}, instance {self.id}: {self.status}**"
        error = [f"{markdown(self.failed_node or '')}: {markdown(self.last_error)}"] if self.last_error else []
        waits = [f"- {markdown(str(wait))}" for wait in self.waits]
        lines = ["| at | node | what | after | how |", "|---|---|---|---|---|"]
        lines += [f"| {' | '.join(markdown(text(value)) for value in row)} |" for row in self.history_rows()]
        parts = [head, *error, "\n".join(waits), self.diagram(), "\n".join(lines) if self.history else ""]
        return "\n\n".join(part for part in parts if part)


class Instances(tuple[Instance, ...]):
    """Instances, newest first; a table in a notebook."""

    __slots__ = ()

    def rows(self) -> list[tuple[object, ...]]:
        """Return one row per instance: number, workflow, key, status, started, took, what it waits for or its error."""
        return [
            (
                each.id,
                f"{each.workflow} v{each.version}",
                each.key,
                each.status,
                each.created_at,
                None if each.finished_at is None else duration(each.finished_at - each.created_at),
                each.last_error or "; ".join(map(str, each.waits)),
            )
            for each in self
        ]

    def _repr_html_(self) -> str:
        return table(("instance", "workflow", "key", "status", "started", "took", "waits or why"), self.rows())


@dataclass(frozen=True, kw_only=True)
class Approval:
    """A question to people, as it stood when it was read."""

    id: int
    instance: int
    workflow: str
    node: str
    #: open answered timed_out cancelled.
    status: str
    #: Who may answer; nobody named: anybody.
    who: tuple[str, ...]
    question: str
    choices: tuple[str, ...]
    asked_at: dt.datetime
    #: Until when, if there is a limit.
    due_at: dt.datetime | None
    ended_at: dt.datetime | None
    answered_by: str | None
    choice: str | None
    note: str | None


class Approvals(tuple[Approval, ...]):
    """Approvals, the oldest first; a table in a notebook."""

    __slots__ = ()

    def rows(self) -> list[tuple[object, ...]]:
        """Return one row per approval: number, workflow, question, choices, who, asked, until, answer."""
        return [
            (
                each.id,
                f"{each.workflow} ({each.instance})",
                each.question,
                ", ".join(each.choices),
                ", ".join(each.who) or "anybody",
                each.asked_at,
                each.due_at,
                f"{each.choice} ({each.answered_by})" if each.choice else each.status,
            )
            for each in self
        ]

    def _repr_html_(self) -> str:
        return table(("approval", "workflow", "question", "choices", "who", "asked", "until", "answer"), self.rows())


@dataclass(frozen=True, kw_only=True)
class StoredWorkflow:
    """A version of a workflow in the database."""

    name: str
    version: int
    digest: str
    enabled: bool
    created_at: dt.datetime
    #: Instances of this version that run.
    running: int
    definition: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Why:
    """Why an instance does not go on, in one answer."""

    instance: Instance
    waits: tuple[Wait, ...]
    #: Workers that are connected and listen just now.
    workers: int
    #: The clock of the database when it was asked.
    now: dt.datetime

    def __str__(self) -> str:
        """Say it in sentences."""
        one = self.instance
        head = f"Workflow instance {one.id} ({one.workflow} v{one.version}) is {one.status}"
        if one.status == "failed":
            again = f"Set it running again: rowlease workflow retry {one.id}"
            return f"{head}: node {one.failed_node}: {one.last_error}. {again}"
        if one.ended:
            return f"{head} since {moment(one.finished_at)}." if one.finished_at else f"{head}."
        lines = [f"{head}.", *(f"- {wait}." for wait in self.waits)]
        if any(wait.kind in {"timer", "import", "task"} or wait.until for wait in self.waits):
            lines.append(_served(self.workers))
        return "\n".join(lines)

    def _repr_markdown_(self) -> str:
        return "\n\n".join(markdown(line) for line in str(self).splitlines())


def _served(workers: int) -> str:
    if workers:
        return f"Workers that listen now: {workers}."
    return "No worker listens now: what is due waits until one runs (rowlease work)."


def markdown(said: str) -> str:
    """Return a text that Markdown shows as it is, on one line."""
    shown = " ".join(said.split())
    for mark in "\\`*_{}[]<>#|~$&":
        shown = shown.replace(
            mark, f"\\{mark}" if mark not in "<>&" else {"<": "&lt;", ">": "&gt;", "&": "&amp;"}[mark]
        )
    return shown


def told(step: Step) -> str:
    """Say the detail of a line of history in words."""
    detail = step.detail
    match step.what:
        case "passed" if "message" in detail:
            return str(detail["message"])
        case "passed":
            rest = [
                f"{key}: {value}"
                for key, value in detail.items()
                if key not in {"outcome", "set"} and value is not None
            ]
            return "; ".join([str(detail["outcome"]), *rest])
        case "waits":
            return "; ".join(f"{key}: {value}" for key, value in detail.items())
        case "failed":
            return str(detail["error"])
        case _:
            return "; ".join(f"{key}: {value}" for key, value in detail.items() if value not in (None, [], {}))


def instance(conn: Connection, id: int) -> Instance:  # noqa: A002 - the column's name
    """Read one instance with its history, its workflow and its tokens. Raises: WorkflowNotFoundError."""
    row = conn.execute(ST["instance"], {"id": id}).fetchone()
    if row is None:
        raise WorkflowNotFoundError(f"there is no workflow instance {id}")
    steps = tuple(Step(**each) for each in conn.execute(ST["history"], {"id": id}).fetchall())
    marked: dict[str, dict[str, int]] = {}
    for each in conn.execute(ST["marked"], {"id": id}).fetchall():
        marked.setdefault(each["node"], {})[each["status"]] = int(each["tokens"])
    (version,) = (v for v in versions(conn, row["workflow"]) if v.version == row["version"])
    return Instance(
        **row,
        waits=waits_of(conn, [id]).get(id, ()),
        history=steps,
        definition=workflow_of(conn, version.name, version.digest),
        marked=marked,
    )


def instances(
    conn: Connection, *, workflow: str | None = None, status: str | None = None, limit: int | None = None
) -> Instances:
    """Read the newest instances with what they wait for; `limit` null reads all."""
    rows = conn.execute(ST["instances"], {"workflow": workflow, "status": status, "limit": limit}).fetchall()
    waits = waits_of(conn, [row["id"] for row in rows if row["status"] == "running"])
    return Instances(Instance(**row, waits=waits.get(row["id"], ())) for row in rows)


def waits_of(conn: Connection, ids: Sequence[int]) -> dict[int, tuple[Wait, ...]]:
    """Read what the tokens of these instances wait for."""
    found: dict[int, list[Wait]] = {}
    for row in conn.execute(ST["waits"], {"ids": list(ids)}).fetchall():
        found.setdefault(row["instance_id"], []).append(_wait(row))
    return {id_: tuple(waits) for id_, waits in found.items()}


def _wait(row: Mapping[str, Any]) -> Wait:
    kind = "join"
    if row["approval_id"] is not None:
        kind = "approval"
    elif row["job_id"] is not None:
        kind = "import"
    elif row["run"] is not None:
        kind = "task"
    elif row["timer_id"] is not None:
        kind = "timer"
    return Wait(
        instance=row["instance_id"],
        token=row["token"],
        node=row["node"],
        kind=kind,
        since=row["since"],
        until=row["answer_until"] if kind == "approval" else row["due_at"],
        who=tuple(row["who"] or ()),
        question=row["question"],
        approval=row["approval_id"],
        job=row["job_id"],
        job_status=row["job_status"],
        run=row["run"],
        run_status=row["run_status"],
        problem=row["timer_error"] or row["message_error"],
    )


def why(conn: Connection, id: int) -> Why:  # noqa: A002 - the column's name
    """Say what an instance waits for, since and until when, who may act, and whether a worker is there to serve it."""
    found = instance(conn, id)
    row = conn.execute(ST["workers"]).fetchone()
    assert row is not None  # a select without from
    return Why(instance=found, waits=found.waits, workers=int(row["workers"]), now=row["now"])


def approvals(
    conn: Connection,
    *,
    who: str | None = None,
    status: str | None = "open",
    instance_id: int | None = None,
    id: int | None = None,  # noqa: A002 - the column's name
) -> Approvals:
    """Read approvals, the oldest first; `who` leaves those that this person may answer."""
    params = {"who": who, "status": status, "instance_id": instance_id, "id": id}
    return Approvals(
        Approval(
            id=row["id"],
            instance=row["instance_id"],
            workflow=f"{row['workflow_name']} v{row['workflow_version']}",
            node=row["node"],
            status=row["status"],
            who=tuple(row["who"]),
            question=row["question"],
            choices=tuple(row["choices"]),
            asked_at=row["asked_at"],
            due_at=row["due_at"],
            ended_at=row["ended_at"],
            answered_by=row["answered_by"],
            choice=row["choice"],
            note=row["note"],
        )
        for row in conn.execute(ST["approvals"], params).fetchall()
    )


def versions(conn: Connection, name: str | None = None) -> list[StoredWorkflow]:
    """Read the stored versions, the newest of each workflow first."""
    return [StoredWorkflow(**row) for row in conn.execute(ST["versions"], {"name": name}).fetchall()]


def history_text(found: Instance) -> str:
    """Return the history as a table for a terminal."""
    return text_table(("At", "Node", "What", "After", "How"), found.history_rows(), widest=70)
