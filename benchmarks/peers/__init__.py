"""The whole job of a build, once for each peer: log in, vocabularies and encoded splits out."""
