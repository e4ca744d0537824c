"""The parameters of queries, as far as the server checks them."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from interlock.api.requests import FLAGS

Schema = dict[str, Any]

#: A whole number that is no longer than this is read.
LARGEST_NUMBER = 10**18 - 1
#: What the lengths of time in a query are like.
_NUMBER = "[0-9]{1,5}([.][0-9]{1,3})?"
LENGTH = f"^(0|{''.join(f'({_NUMBER}{unit})?' for unit in ('d', 'h', 'm', 's', 'ms'))})$"


class Parameter(Struct, frozen=True, kw_only=True):
    """A parameter of a query, and what the server takes for it."""

    name: str
    type: str = "string"
    says: str = ""
    enum: tuple[str, ...] = ()
    pattern: str = ""
    shortest: int | None = None
    minimum: int | None = None
    maximum: int | None = None
    format: str = ""

    def schema(self) -> Schema:
        """What values it has, for version 3."""
        if self.type == "boolean":
            # Clients write truth in several ways, and all of them are taken.
            others = [word for word in FLAGS if word not in ("true", "false")]
            return {"anyOf": [{"type": "boolean"}, {"type": "string", "enum": others}]}
        return self.plain_schema()

    def plain_schema(self) -> Schema:
        """The same for version 2, which has no choices between types."""
        made: Schema = {"type": self.type}
        if self.enum:
            made["enum"] = list(self.enum)
        for name in ("pattern", "minimum", "maximum", "format"):
            value = getattr(self, name)
            if value not in ("", None):
                made[name] = value
        if self.shortest is not None:
            made["minLength"] = self.shortest
        return made


def number(name: str, says: str, least: int = 0, most: int = LARGEST_NUMBER) -> Parameter:
    """A whole number."""
    return Parameter(
        name=name, type="integer", says=says, format="int64", minimum=least, maximum=most
    )


def flag(name: str, says: str) -> Parameter:
    """True or false."""
    return Parameter(name=name, type="boolean", says=says)
