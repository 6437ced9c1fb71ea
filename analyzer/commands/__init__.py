"""The ``analyze`` and ``info`` commands of tachograph."""

from .analyze import analyze
from .info import info

__all__ = ["analyze", "info"]
