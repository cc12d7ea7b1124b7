"""An independent checker of histories: it reads the rows and knows none of the code that wrote them."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from importer.db import Connection

Row = dict[str, Any]


def check_all(conn: Connection) -> Counter[str]:
    """Check every instance; return how many there are by status."""
    instances = _rows(
        conn,
        "select i.id, i.status, w.definition from rowlease.workflow_instances as i join rowlease.workflows as w"
        " on w.name = i.workflow_name and w.version = i.workflow_version",
    )
    belongings = {
        table: _by_instance(_rows(conn, f"select * from rowlease.{table}"))
        for table in ("workflow_tokens", "timer_jobs", "approvals", "import_waits", "workflow_events")
    }
    for instance in instances:
        of = {table: rows.get(instance["id"], []) for table, rows in belongings.items()}
        _Check(instance, of).all()
    return Counter(instance["status"] for instance in instances)


class _Check:
    """One instance."""

    def __init__(self, instance: Row, of: dict[str, list[Row]]) -> None:
        self.id = instance["id"]
        self.status = instance["status"]
        self.nodes = {node["id"]: node for node in instance["definition"]["nodes"]}
        self.ways = instance["definition"]["connections"]
        self.start = instance["definition"]["start"]
        self.tokens = {token["number"]: token for token in of["workflow_tokens"]}
        self.timers = {timer["token"]: timer for timer in of["timer_jobs"]}
        self.approvals = {approval["token"]: approval for approval in of["approvals"]}
        self.waits = {wait["token"]: wait for wait in of["import_waits"]}
        self.events = of["workflow_events"]
        self.children: dict[int, list[Row]] = defaultdict(list)
        for token in self.tokens.values():
            if token["source"] is not None:
                self.children[token["source"]].append(token)

    def all(self) -> None:
        """Hold every rule."""
        self.events_match_tokens()
        self.tokens_follow_connections()
        self.joins_go_on_once()
        self.nothing_is_lost()
        self.belongings_agree()

    def require(self, holds: object, said: str, *rows: object) -> None:
        """Fail with the instance and the rows."""
        assert holds, f"instance {self.id} ({self.status}): {said}: {rows}"

    def type(self, token: Row) -> str:
        """The type of the node on which a token stands or stood."""
        return str(self.nodes[token["node"]]["type"])

    def events_match_tokens(self) -> None:
        """A token is consumed once and recorded once; nothing else is recorded as passed."""
        passed = Counter(event["token"] for event in self.events if event["what"] == "passed")
        consumed = Counter(number for number, token in self.tokens.items() if token["status"] == "consumed")
        self.require(
            passed == consumed, "passed events are not the consumed tokens", passed - consumed, consumed - passed
        )
        waits = Counter(event["token"] for event in self.events if event["what"] == "waits")
        self.require(all(count == 1 for count in waits.values()), "a token began to wait twice", waits)
        whats = Counter(event["what"] for event in self.events)
        self.require(whats["started"] == 1, "started more than once", whats)
        self.require(whats["completed"] == (self.status == "completed"), "completed is not recorded once", whats)

    def tokens_follow_connections(self) -> None:
        """Each token but the first came over a connection of the definition from a consumed one."""
        for token in self.tokens.values():
            if token["source"] is None:
                self.require(token["node"] == self.start, "a token came from nowhere", token)
                continue
            way, source = self.ways[token["connection"]], self.tokens[token["source"]]
            self.require(source["status"] == "consumed", "its source is not consumed", token, source)
            self.require(
                (way["source"], way["target"]) == (source["node"], token["node"]), "no such connection", token, way
            )
        firsts = [token for token in self.tokens.values() if token["source"] is None]
        self.require(len(firsts) == 1, "there is more than one first token", firsts)

    def joins_go_on_once(self) -> None:
        """All tokens of one passing of a fork that came to its join made one token, after the last had come."""
        groups: dict[tuple[str, int], list[Row]] = defaultdict(list)
        for token in self.tokens.values():
            if self.type(token) == "join":
                fork = self.nodes[token["node"]]["config"]["fork"]
                (passing,) = (at for node, at in token["scope"] if node == fork)
                groups[token["node"], passing].append(token)
        for (node, passing), group in groups.items():
            made = [child for token in group for child in self.children[token["number"]]]
            states = {token["status"] for token in group}
            self.require(len(states) == 1, "a join took some of its tokens and left others", node, group)
            self.require(len(made) == (states == {"consumed"}), "a join did not go on once", node, group, made)
            if made:
                within = [t for t in self.tokens.values() if passing in [at for _, at in t["scope"]]]
                self.require(all(t["status"] == "consumed" for t in within), "a join left tokens behind", within)

    def nothing_is_lost(self) -> None:
        """A consumed token made what its node makes; an active one waits for something that can come."""
        active = [token for token in self.tokens.values() if token["status"] == "active"]
        self.require(bool(active) == (self.status == "running"), "tokens and status do not agree", active)
        for number, token in self.tokens.items():
            kind, made = self.type(token), len(self.children[number])
            if token["status"] == "consumed" and kind not in {"join", "end"}:
                ways = sum(way["source"] == token["node"] for way in self.ways)
                self.require(made == (ways if kind == "fork" else 1), "a step was lost or doubled", token)
            elif kind == "end" or token["status"] != "consumed":
                self.require(made == 0, "a token that is not over made another", token)
        for token in active:
            kind, number = self.type(token), token["number"]
            comes = {
                "timer": number in self.timers and self.timers[number]["status"] in {"pending", "processing"},
                "approval": number in self.approvals and self.approvals[number]["status"] == "open",
                "import": number in self.waits,
                "join": any(other["node"] != token["node"] for other in active),
            }
            self.require(comes.get(kind), "an active token waits for nothing", token)

    def belongings_agree(self) -> None:
        """Timers and approvals are as their tokens are."""
        for number, timer in self.timers.items():
            token = self.tokens[number]
            is_open = timer["status"] in {"pending", "processing"}
            self.require(is_open == (token["status"] == "active"), "timer and token do not agree", timer, token)
            if timer["status"] == "completed":
                expected = "timed_out" if self.type(token) == "approval" else "done"
                self.require(token["outcome"] == expected, "a timer completed another outcome", timer, token)
        for number, approval in self.approvals.items():
            token = self.tokens[number]
            self.require(
                (approval["status"] == "open") == (token["status"] == "active"),
                "approval and token do not agree",
                approval,
            )
            if approval["status"] == "answered":
                self.require(token["outcome"] == approval["choice"], "the answer is not the outcome", approval, token)


def _rows(conn: Connection, query: str) -> list[Row]:
    return conn.execute(query.encode()).fetchall()


def _by_instance(rows: list[Row]) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["instance_id"]].append(row)
    return found
