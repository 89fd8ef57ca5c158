"""Moments from Spark: each task adds record batches to an empty `skpca.Moments`, and the driver merges the answers.

    pip install pyspark pyarrow pandas skpca
    python benchmarks/spark_moments.py

Nothing of skpca but `Moments` is needed on workers: the same lines serve any engine that maps record batches.
"""

import numpy as np
import pyarrow as pa
import skpca


def adds(empty):
    """What `mapInArrow` runs: record batches in, one batch with the bytes of their moments out."""

    def moments_of(batches):
        moments = skpca.Moments.from_bytes(empty)
        for batch in batches:
            rows = np.column_stack([column.to_numpy(zero_copy_only=False) for column in batch.columns])
            if len(rows):
                moments.add(rows)
        yield pa.RecordBatch.from_pydict({"moments": pa.array([moments.to_bytes()], pa.binary())})

    return moments_of


def merged(parts):
    """The moments of all parts, which are bytes."""
    first, *others = map(skpca.Moments.from_bytes, parts)
    for other in others:
        first.merge(other)
    return first


def fit(frame, sample, **options):
    """The model of all rows of a Spark dataframe over the points that a fit to a sample of them chooses."""
    estimator = skpca.SparseKernelPCA(**options).fit(sample)
    empty = estimator.moments().to_bytes()
    parts = frame.mapInArrow(adds(empty), "moments binary").collect()
    return estimator.fit_moments(merged(bytes(part["moments"]) for part in parts))


def main():
    import pandas as pd
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", False).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    rows = np.random.default_rng(0).normal(size=(20_000, 6)) * np.arange(1, 7)
    frame = spark.createDataFrame(pd.DataFrame(rows, columns=list("abcdef"))).repartition(4)
    model = fit(frame, rows[:5000], n_components=3, n_support=20, random_state=0)
    here = skpca.SparseKernelPCA(n_components=3, n_support=20, random_state=0).fit(rows[:5000])
    here.fit_moments(here.moments(rows))
    scale = np.abs(here.transform(rows)).max()
    difference = np.abs(model.transform(rows) - here.transform(rows)).max() / scale
    print(
        f"{frame.rdd.getNumPartitions()} partitions, features differ by {difference:.1e} of the largest from those here"
    )
    spark.stop()


if __name__ == "__main__":
    main()
