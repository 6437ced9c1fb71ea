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
SMALL = "a\n\n{% for row in rows %}{{ row|title }}{% endfor %}"

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    (folder / "page.html").write_text(PAGE)
    environment = Environment(loader=FileSystemLoader(folder), autoescape=True)
    end = time.process_time() + 0.7
    while time.process_time() < end:
        environment.get_template("page.html").render(title="Rows", rows=range(400))
        environment.from_string(SMALL).render(rows=["row"] * 400)
