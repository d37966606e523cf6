"""Product extraction: facts from every part of a page, merged into one product."""
