"""What a workflow is made of: nodes and connections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pydantic

from importer.errors import NodeTypeMissingError
from importer.workflow import node_types
from importer.workflow.node_types import NodeType


@dataclass(frozen=True, kw_only=True)
class Node:
    """A node: where a token stands and what it does there."""

    id: str
    type: str
    #: What people call it; the id when nothing was said.
    name: str
    #: As it was written.
    config: Mapping[str, Any] = field(default_factory=dict)
    #: The config as read by its type; none when nobody here knows the type.
    model: pydantic.BaseModel | None = field(default=None, compare=False, repr=False)

    @property
    def kind(self) -> NodeType:
        """Its type. Raises: NodeTypeMissingError."""
        kind = node_types.node_type(self.type, node=self.id)
        if self.model is None:
            raise NodeTypeMissingError(self.id, self.type)
        return kind


@dataclass(frozen=True, kw_only=True)
class Connection:
    """A way from node to node, taken when its source ended so."""

    source: str
    target: str
    #: As it was written; none: when no other connection of the source is taken (of a fork: always).
    when: str | None = None
    #: `when` is an outcome of the source, and no expression.
    is_outcome: bool = field(default=False, compare=False)
