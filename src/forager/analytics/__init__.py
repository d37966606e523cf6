"""The lake: products, prices, pages and extractions as Parquet files, and questions to them."""
