"""Pure steps of the pipeline, from DataFrames to DataFrames or from rows to rows: they neither read nor write."""
