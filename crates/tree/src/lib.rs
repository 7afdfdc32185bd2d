//! Copies trees: what to copy, in which order, with which metadata, anchored on directory descriptors.
