"""The live backend: Spark Structured Streaming on a cluster."""
