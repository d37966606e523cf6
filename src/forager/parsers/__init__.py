"""Site parsers: what generic extraction cannot know about single shops, as plug-ins."""
