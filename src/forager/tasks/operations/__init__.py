"""Operations on tasks, their dead letters and the alarms of their domains."""
