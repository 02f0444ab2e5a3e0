"""Decisions over a horizon: what being late costs, and the cheapest way through the sizes of the next intervals."""
