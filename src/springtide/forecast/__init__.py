"""Forecasts of source rates: what is foreseen, from what has been."""
