"""The dictionary of OpenTelemetry's profiles: tables that hold each thing once, and that other messages refer to."""

from __future__ import annotations

from collections.abc import Sequence

from . import otlp_fields as fields
from .extract import Thread
from .frames import FrameTree
from .otlp_attributes import Value, any_value
from .protobuf import Message


class _Table:
    """Encoded entries, each once; the first is the zero value."""

    def __init__(self, zero: bytes = b"") -> None:
        self.entries = {zero: 0}

    def add(self, entry: bytes) -> int:
        return self.entries.setdefault(entry, len(self.entries))


class Dictionary:
    """A dictionary in the making: methods return the number of an entry. It holds what was asked for and no more."""

    def __init__(self, tree: FrameTree, threads: Sequence[Thread]) -> None:
        self._tree, self._threads = tree, threads
        self._strings, self._attributes, self._mappings = _Table(), _Table(), _Table()
        self._functions, self._locations, self._stacks = _Table(), _Table(), _Table()
        self._of_frame: dict[int, int] = {}
        self._of_node: dict[int, int] = {}
        self._of_thread: dict[int, tuple[int, ...]] = {}

    def string(self, text: str) -> int:
        """A text."""
        return self._strings.add(text.encode("utf-8", "replace"))

    def attribute(self, key: str, value: Value) -> int:
        """A name and its value."""
        each = fields.KeyValueAndUnit
        message = Message().number(each.KEY_STRINDEX, self.string(key)).message(each.VALUE, any_value(value))
        return self._attributes.add(message.to_bytes())

    def thread(self, number: int) -> tuple[int, ...]:
        """The attributes of a thread's samples."""
        found = self._of_thread.get(number)
        if found is None:
            thread = self._threads[number]
            known: dict[str, Value] = {"thread.name": thread.name}
            if thread.tid is not None:
                known["thread.id"] = thread.tid
            found = self._of_thread[number] = tuple(self.attribute(key, value) for key, value in known.items())
        return found

    def value_type(self, name: str, unit: str) -> Message:
        """What values count; the message itself, for it is in no table."""
        each = fields.ValueType
        return Message().number(each.TYPE_STRINDEX, self.string(name)).number(each.UNIT_STRINDEX, self.string(unit))

    def stack(self, node: int) -> int:
        """The stack of a node of the tree."""
        number = self._of_node.get(node)
        if number is None:
            locations = [self._location(frame) for frame in reversed(self._tree.path(node))]
            stack = Message().packed(fields.Stack.LOCATION_INDICES, locations)
            number = self._of_node[node] = self._stacks.add(stack.to_bytes())
        return number

    def to_message(self) -> Message:
        """The tables."""
        each = fields.ProfilesDictionary
        no_link = Message().blob(fields.Link.TRACE_ID, bytes(16)).blob(fields.Link.SPAN_ID, bytes(8))
        dictionary = Message()
        for field, table in (
            (each.MAPPING_TABLE, self._mappings),
            (each.LOCATION_TABLE, self._locations),
            (each.FUNCTION_TABLE, self._functions),
            (each.LINK_TABLE, _Table(no_link.to_bytes())),
            (each.STRING_TABLE, self._strings),
            (each.ATTRIBUTE_TABLE, self._attributes),
            (each.STACK_TABLE, self._stacks),
        ):
            for entry in table.entries:
                dictionary.blob(field, entry)
        return dictionary

    def _location(self, number: int) -> int:
        known = self._of_frame.get(number)
        if known is not None:
            return known
        frame = self._tree.frames[number]
        function = self._tree.functions[frame.function]
        line = Message().number(fields.Line.FUNCTION_INDEX, self._function(frame.function))
        if frame.line is not None:
            line.number(fields.Line.LINE, frame.line)
        location = Message()
        if function.module is not None:
            mapping = Message().number(fields.Mapping.FILENAME_STRINDEX, self.string(function.module))
            location.number(fields.Location.MAPPING_INDEX, self._mappings.add(mapping.to_bytes()))
        location.message(fields.Location.LINES, line)
        if function.native or function.file is not None:
            kind = self.attribute("profile.frame.type", "native" if function.native else "cpython")
            location.packed(fields.Location.ATTRIBUTE_INDICES, [kind])
        found = self._of_frame[number] = self._locations.add(location.to_bytes())
        return found

    def _function(self, number: int) -> int:
        function = self._tree.functions[number]
        message = Message().number(fields.Function.NAME_STRINDEX, self.string(function.name))
        if function.file is not None:
            message.number(fields.Function.FILENAME_STRINDEX, self.string(function.file))
        if function.first_line is not None:
            message.number(fields.Function.START_LINE, function.first_line)
        return self._functions.add(message.to_bytes())
