//! Quantiles of numbers. Knows nothing of where they come from.

/// The value below which `fraction` of `values` lie, interpolated between the two nearest.
pub(in crate::query) fn quantile(values: &[f64], fraction: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let place = fraction * sorted.len().checked_sub(1)? as f64;
    let low = *sorted.get(place.floor() as usize)?;
    let high = *sorted.get(place.ceil() as usize)?;
    let between = low + (high - low) * place.fract();
    if between.is_finite() {
        return Some(between);
    }
    // The distance is too large for a number.
    Some(low * (1.0 - place.fract()) + high * place.fract())
}
