"""Recurrent networks that continue a series: what they are, how they are trained, and how they predict without JAX."""
