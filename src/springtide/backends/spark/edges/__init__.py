"""Edges: the durable streams between operators."""
