"""Products: tasks that keep pages fresh, their stages, and what is known of each product."""
