"""SQL of parser rollouts and success rates."""
