"""robots.txt: parser, cache and the check before each request."""
