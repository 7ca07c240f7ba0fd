"""Raw columns and what was fitted become ids, numbers, labels and splits."""
