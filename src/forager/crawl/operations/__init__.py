"""Operations on crawls, their jobs and their sources."""
