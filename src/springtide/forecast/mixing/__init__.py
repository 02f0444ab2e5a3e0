"""Several forecasts made one: how much each counts, how far off it may be, and how both follow what comes."""
