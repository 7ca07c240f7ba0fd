"""What is learned from the train split only: vocabularies and statistics."""
