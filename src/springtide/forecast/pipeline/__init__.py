"""From raw events, journals or rate files to supervised windows in Parquet, by Spark: `prepare`, then `open_prepared`."""
