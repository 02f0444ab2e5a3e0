"""Clusters to run on, for those who have none."""
