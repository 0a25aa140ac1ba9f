"""Operations on tables: changes of rows and of metadata."""
