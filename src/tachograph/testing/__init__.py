"""``pytest --tachograph``: tests are recorded, their costs shown, and limits of theirs held."""
