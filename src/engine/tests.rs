//! Tests of the engine as a whole: parity with the original, robustness, invariants.

mod golden;
mod hostile;
mod properties;
mod speed;
mod stored;
