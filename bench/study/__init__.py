"""The study: questions of layouts and configurations, each with the run that answers it and a page for readers."""
