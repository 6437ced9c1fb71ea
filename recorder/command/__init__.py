"""``tachograph record`` and ``tachograph recover``: options, target, launch, and one recording from start to end."""
