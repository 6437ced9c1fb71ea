"""A report in the output of a cell: the page in a frame of its own, and the text for what shows no frames."""

from __future__ import annotations

from html import escape
from uuid import uuid4

from tachograph.notebook.reading import Shown

HEIGHT = 720
"""CSS pixels; the frame can be drawn larger."""

_FRAME = """\
<div style="resize: vertical; overflow: hidden; height: {height}px; min-height: 160px; border: 1px solid #8884;\
 border-radius: 4px;">
<iframe id="{name}" title="{title}" sandbox="allow-scripts allow-popups" referrerpolicy="no-referrer"\
 style="width: 100%; height: 100%; border: 0; display: block;" srcdoc="{page}"></iframe>
</div>
<script>{script}</script>
<details><summary>{title}, as text</summary><pre style="line-height: 1.2; overflow-x: auto;">{text}</pre></details>
"""

# The page is in a sandbox and cannot see whether the notebook is light or dark: it is told, also when that changes.
# Notebooks have no common way to say it; the colour behind the frame is what all of them have.
_SCRIPT = """
(() => {
  const frame = document.getElementById("%s");
  if (!frame) return;
  const tell = () => {
    let box = frame, colour = null;
    while ((box = box.parentElement)) {
      const parts = (getComputedStyle(box).backgroundColor.match(/[\\d.]+/g) || []).map(Number);
      if (parts.length > 2 && (parts.length < 4 || parts[3] > 0.5)) { colour = parts; break; }
    }
    const dark = colour && 0.3 * colour[0] + 0.59 * colour[1] + 0.11 * colour[2] < 128;
    frame.contentWindow?.postMessage({ tachographTheme: dark ? "dark" : "light" }, "*");
  };
  frame.addEventListener("load", tell);
  tell();
  new MutationObserver((_, observer) => {
    if (!frame.isConnected) return observer.disconnect();
    tell();
    setTimeout(tell, 600);
  }).observe(document.body, { attributes: true });
})();
"""


def bundle(shown: Shown, title: str) -> dict[str, str]:
    """The report by MIME type. A frontend takes the richest that it has; the sandbox keeps the page to itself."""
    name = f"tachograph-{uuid4().hex}"
    html = _FRAME.format(
        name=name,
        height=HEIGHT,
        title=escape(f"tachograph: {title}"),
        page=escape(shown.page, quote=True),
        script=_SCRIPT % name,
        text=escape(shown.text),
    )
    return {"text/html": html, "text/plain": shown.text}
