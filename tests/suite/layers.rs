//! Where they belong.
