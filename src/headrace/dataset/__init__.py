"""The store: shards, manifest, views, and the datasets over them."""
