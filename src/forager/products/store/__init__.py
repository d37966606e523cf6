"""SQL of products, prices and extractions."""
