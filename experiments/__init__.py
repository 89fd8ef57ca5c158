"""The tables and figures of five papers on sparse kernel PCA, computed again: `python -m experiments list`."""
