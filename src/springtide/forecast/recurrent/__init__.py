"""Recurrent networks that continue a series: what they are, how they are taught, and how they predict without torch."""
