"""Forecasts while an application runs, live or simulated."""
