//! Fisher's method of combining probabilities.

/// The chance that a chi-squared value with `pairs` times two degrees of freedom is at least twice `half`.
///
/// The order of operations is the original's; another one would differ in the last bit.
pub(super) fn chi2q(half: f64, pairs: usize) -> f64 {
    let mut term = (-half).exp();
    // Zero stays zero. This also keeps an infinite `half` from making it not a number.
    if term == 0.0 {
        return 0.0;
    }
    let mut sum = term;
    for i in 1..pairs {
        term *= half / i as f64;
        sum += term;
    }
    sum.min(1.0)
}

/// Splits a number into a fraction of at least 0.5 and below 1, and a power of two.
pub(super) fn frexp(value: f64) -> (f64, i32) {
    const EXPONENT: u64 = 0x7ff << 52;
    if value == 0.0 || !value.is_finite() {
        return (value, 0);
    }
    // A subnormal number is scaled up first to have an exponent of its own.
    let (value, scaled) = if value.is_normal() { (value, 0) } else { (value * (1_u64 << 54) as f64, 54) };
    let bits = value.to_bits();
    let exponent = ((bits & EXPONENT) >> 52) as i32 - 1022 - scaled;
    (f64::from_bits(bits & !EXPONENT | 1022 << 52), exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions() {
        assert_eq!(frexp(1.0), (0.5, 1));
        assert_eq!(frexp(0.75), (0.75, 0));
        assert_eq!(frexp(0.0), (0.0, 0));
        assert_eq!(frexp(f64::MIN_POSITIVE / 4.0), (0.5, -1023));
        let (fraction, exponent) = frexp(1e-201);
        assert_eq!(fraction * 2_f64.powi(exponent), 1e-201);
    }

    #[test]
    fn chi_squared() {
        assert_eq!(chi2q(0.0, 3), 1.0);
        assert_eq!(chi2q(f64::INFINITY, 150), 0.0);
        assert!((chi2q(1.0, 1) - (-1.0_f64).exp()).abs() < 1e-15);
    }
}
