"""A menu is validated against a schema whose definitions refer to one another, as OpenAPI's does.

python json_schema.py TIMES
"""

import sys
from typing import Any

import jsonschema

DEFINITIONS = 60


def definition(number: int) -> dict[str, Any]:
    """A dish that may be followed by the next one."""
    properties: dict[str, Any] = {"name": {"type": "string", "minLength": 1}, "price": {"type": "number", "minimum": 0}}
    if number + 1 < DEFINITIONS:
        properties["next"] = {"$ref": f"#/definitions/dish{number + 1}"}
    return {"type": "object", "required": ["name", "price"], "properties": properties}


def menu() -> dict[str, Any]:
    """Dishes, the last one innermost."""
    dish: dict[str, Any] = {}
    for number in reversed(range(DEFINITIONS)):
        dish = {"name": f"dish {number}", "price": number, **({"next": dish} if dish else {})}
    return dish


def main(times: int) -> None:
    """Validate the same menu over and over."""
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {f"dish{number}": definition(number) for number in range(DEFINITIONS)},
        "$ref": "#/definitions/dish0",
    }
    validator, dish = jsonschema.Draft7Validator(schema), menu()
    for _ in range(times):
        validator.validate(dish)


main(int(sys.argv[1]))
