"""Operations, declared once in their feature: API, command line and library are derived."""
