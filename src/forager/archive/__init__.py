"""The archive: raw responses as WARC records in segments, on local disk or in an object store."""
