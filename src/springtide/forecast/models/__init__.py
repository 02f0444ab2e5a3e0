"""Models that learn from windows of a series and continue it: one file each, all of them `Forecaster`s."""
