"""Tables: CSV and its kin, Parquet."""
