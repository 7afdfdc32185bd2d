//! Measures the engines with a protocol that survives noisy machines.
