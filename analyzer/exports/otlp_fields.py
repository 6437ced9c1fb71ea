"""Field numbers of OpenTelemetry's profiles signal, of release 1.11.0 of open-telemetry/opentelemetry-proto.

The signal is alpha: fields got other numbers from release to release (``Sample``'s last in 1.10.0). No other module
knows them; the tests hold them against the messages of the package ``opentelemetry-proto``. One class for each message,
in it the fields that are used; names are those of the proto.
"""

from __future__ import annotations

from enum import IntEnum


class ProfilesData(IntEnum):
    """All of a file; ``ExportProfilesServiceRequest`` has the same fields."""

    RESOURCE_PROFILES = 1
    DICTIONARY = 2


class ProfilesDictionary(IntEnum):
    """Tables that the other messages refer to by number; entry 0 of each is its zero value."""

    MAPPING_TABLE = 1
    LOCATION_TABLE = 2
    FUNCTION_TABLE = 3
    LINK_TABLE = 4
    STRING_TABLE = 5
    ATTRIBUTE_TABLE = 6
    STACK_TABLE = 7


class ResourceProfiles(IntEnum):
    """The profiles of one process."""

    RESOURCE = 1
    SCOPE_PROFILES = 2


class ScopeProfiles(IntEnum):
    """The profiles of one profiler."""

    SCOPE = 1
    PROFILES = 2


class Profile(IntEnum):
    """The samples of one type."""

    SAMPLE_TYPE = 1
    SAMPLES = 2
    TIME_UNIX_NANO = 3
    DURATION_NANO = 4
    PERIOD_TYPE = 5
    PERIOD = 6
    PROFILE_ID = 7


class ValueType(IntEnum):
    """Type and unit of values."""

    TYPE_STRINDEX = 1
    UNIT_STRINDEX = 2


class Sample(IntEnum):
    """A stack with its value."""

    STACK_INDEX = 1
    ATTRIBUTE_INDICES = 2
    LINK_INDEX = 3
    VALUES = 4


class Mapping(IntEnum):
    """A module of native code."""

    FILENAME_STRINDEX = 4


class Stack(IntEnum):
    """Locations, the innermost first."""

    LOCATION_INDICES = 1


class Location(IntEnum):
    """A frame."""

    MAPPING_INDEX = 1
    LINES = 3
    ATTRIBUTE_INDICES = 4


class Line(IntEnum):
    """A line of a function."""

    FUNCTION_INDEX = 1
    LINE = 2


class Function(IntEnum):
    """A function."""

    NAME_STRINDEX = 1
    FILENAME_STRINDEX = 3
    START_LINE = 4


class Link(IntEnum):
    """A span of a trace."""

    TRACE_ID = 1
    SPAN_ID = 2


class KeyValueAndUnit(IntEnum):
    """An attribute in the dictionary."""

    KEY_STRINDEX = 1
    VALUE = 2


class Resource(IntEnum):
    """The entity that profiles are of: a process."""

    ATTRIBUTES = 1


class InstrumentationScope(IntEnum):
    """The profiler."""

    NAME = 1
    VERSION = 2


class KeyValue(IntEnum):
    """An attribute of a resource."""

    KEY = 1
    VALUE = 2


class AnyValue(IntEnum):
    """The value of an attribute; one field of these."""

    STRING_VALUE = 1
    INT_VALUE = 3
    ARRAY_VALUE = 5


class ArrayValue(IntEnum):
    """A list of values."""

    VALUES = 1


class ExportProfilesServiceResponse(IntEnum):
    """Answer of a receiver."""

    PARTIAL_SUCCESS = 1


class ExportProfilesPartialSuccess(IntEnum):
    """Parts of a request that a receiver refused."""

    REJECTED_PROFILES = 1
    ERROR_MESSAGE = 2
