"""The lake: products, prices, pages and extractions as Parquet files, and queries of them."""
