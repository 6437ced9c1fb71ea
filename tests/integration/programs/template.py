"""Renders templates with Jinja for a while: one of a file, which calls a macro, and one of a text."""

import sys
import time
from pathlib import Path

from jinja2 import Environment, FileSystemLoader

PAGE = """<h1>{{ title }}</h1>
{% macro cell(value) %}
<td>{{ value * 3 }}</td>
{% endmacro %}
{% for row in rows %}
<tr>
{{ cell(row) }}
</tr>
{% endfor %}
{% block foot %}

{{ rows|join(" ")|upper }}
{% endblock %}
"""
SMALL = "a\n\n{% for row in rows %}{{ row * 3 }}{% endfor %}"

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    (folder / "page.html").write_text(PAGE)
    environment = Environment(loader=FileSystemLoader(folder), autoescape=True)
    small = environment.from_string(SMALL)
    end = time.process_time() + 0.9
    while time.process_time() < end:
        environment.get_template("page.html").render(title="Rows", rows=range(400))
        small.render(rows=range(1200))
