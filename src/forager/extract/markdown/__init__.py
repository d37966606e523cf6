"""HTML to markdown, cut into the parts that its headings begin."""
