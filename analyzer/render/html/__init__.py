"""The HTML report: one file that needs nothing else, and no network.

``page`` puts it together from Jinja2 templates, the style sheets and scripts in ``assets``, and the data of
``payload``, which ``pack`` writes compactly. The page itself sums the data up for the window of time that its reader
chooses; it draws no conclusions that the analyzer has not drawn.
"""
