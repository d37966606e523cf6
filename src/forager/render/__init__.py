"""One URL in, one rendered DOM out: a browser whose requests all go through `fetch`."""
