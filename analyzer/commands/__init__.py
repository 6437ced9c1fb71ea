"""The commands of tachograph that read recordings: analyze, info, diff, export, scrub, fleet, mcp."""

from .analyze import analyze
from .info import info

__all__ = ["analyze", "info"]
