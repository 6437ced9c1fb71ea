"""Calls: how often functions were called, and how long their calls lasted."""

from .call_columns import COLUMNS, with_calls
from .call_estimates import CallFacts, read_call_facts

__all__ = ["COLUMNS", "CallFacts", "read_call_facts", "with_calls"]
