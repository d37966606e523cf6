"""How tasks reach workers through a broker. With PostgreSQL alone, no Celery is imported."""
