"""Recordings for assistants: questions that a model may ask over MCP, answered in bounded, marked Markdown."""
