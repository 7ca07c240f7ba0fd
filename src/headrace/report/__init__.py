"""What people read: rows of a store in raw values, and what a build did."""
