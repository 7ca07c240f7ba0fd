"""Raw columns become typed ones: numbers, times, and ids as codes into a part's dictionary."""
