"""Elasticutor's scheduler: cores for executors, as few as the latency allows, where they cost the least state to move."""
