"""The papers' evaluations, run again: one package per paper, each a `Study` of experiments, and what they have in common.

An experiment's runs are pure functions of their parameters and seed, so that a rerun gives the same numbers wherever it runs.
"""
