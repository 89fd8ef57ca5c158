"""Reproduction of the tables and figures of five papers on sparse kernel PCA: `python -m experiments list`."""
