//! Oracle and conformance suite.
