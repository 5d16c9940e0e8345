//! Positions on the earth: which can be believed, and how far apart they are.
//!
//! The earth is treated as a sphere. Over the distances that people cover between two fixes, the resulting
//! error is smaller than that of the fixes, and at the thresholds that matter (tens to hundreds of metres) it
//! is below a metre. Knows no time and no records.

use std::fmt;

/// Mean radius of the earth (IUGG), in metres.
pub const EARTH_RADIUS_METERS: f64 = 6_371_008.8;
/// Distances that are calculated in two ways differ by less: by what is rounded, which is far less.
pub const DOUBTFUL_METERS: f64 = 0.01;

/// A point in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Position {
    pub latitude: f64,
    pub longitude: f64,
}

impl Position {
    #[must_use]
    pub const fn new(latitude: f64, longitude: f64) -> Self {
        Self { latitude, longitude }
    }

    /// Metres along the surface.
    #[must_use]
    pub fn distance_to(self, other: Self) -> f64 {
        let (north, other_north) = (self.latitude.to_radians(), other.latitude.to_radians());
        let across = ((other_north - north) / 2.0).sin();
        let along = ((other.longitude - self.longitude).to_radians() / 2.0).sin();
        let half_chord = across * across + north.cos() * other_north.cos() * along * along;
        // Rounding can put opposite points slightly farther apart than the earth is wide.
        2.0 * EARTH_RADIUS_METERS * half_chord.sqrt().clamp(0.0, 1.0).asin()
    }

    /// Whether a fix of this accuracy says where somebody was. A negative accuracy marks it as invalid, and
    /// 0° north, 0° east without an accuracy is what a device without a fix reports.
    #[must_use]
    pub fn is_usable(self, accuracy: Option<f64>) -> bool {
        match accuracy {
            Some(accuracy) => accuracy >= 0.0,
            None => self.latitude != 0.0 || self.longitude != 0.0,
        }
    }

    /// Degrees, minutes and seconds of both coordinates.
    #[must_use]
    pub fn sexagesimal(self) -> (String, String) {
        let latitude = Sexagesimal(self.latitude, if self.latitude < 0.0 { 'S' } else { 'N' });
        let longitude = Sexagesimal(self.longitude, if self.longitude < 0.0 { 'W' } else { 'E' });
        (latitude.to_string(), longitude.to_string())
    }

    /// The point on a sphere of radius 1, seen from its middle.
    #[must_use]
    pub fn on_unit_sphere(self) -> [f64; 3] {
        let (north, east) = (self.latitude.to_radians(), self.longitude.to_radians());
        [north.cos() * east.cos(), north.cos() * east.sin(), north.sin()]
    }
}

struct Sexagesimal(f64, char);

impl fmt::Display for Sexagesimal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // In thousandths of a second, so that no part is ever rounded up to sixty.
        let thousandths = (self.0.abs() * 3_600_000.0).round() as i64;
        let (seconds, rest) = (thousandths / 1000, thousandths % 1000);
        let (degrees, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(
            formatter,
            "{degrees}° {minutes}' {seconds}.{rest:03}'' {}",
            self.1
        )
    }
}

/// The middle of several positions, right across the antimeridian and the poles.
#[derive(Clone, Copy, Debug, Default)]
pub struct Middle {
    sum: [f64; 3],
    first: Option<(f64, f64)>,
}

impl Middle {
    pub fn add(&mut self, position: Position) {
        self.first.get_or_insert((position.latitude, position.longitude));
        for (sum, part) in self.sum.iter_mut().zip(position.on_unit_sphere()) {
            *sum += part;
        }
    }

    /// The middle, or the first position where the positions cancel each other out. `None` without positions.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        let (latitude, longitude) = self.first?;
        let [x, y, z] = self.sum;
        let across = x.hypot(y);
        if across.hypot(z) < 1e-9 {
            return Some(Position::new(latitude, longitude));
        }
        let east = y.atan2(x).to_degrees();
        Some(Position::new(
            z.atan2(across).to_degrees(),
            if east >= 180.0 { -180.0 } else { east },
        ))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Metres on the WGS84 ellipsoid, after Vincenty; `None` where the iteration does not converge (nearly
    /// opposite points).
    fn vincenty(from: Position, to: Position) -> Option<f64> {
        let (major, flattening) = (6_378_137.0_f64, 1.0 / 298.257_223_563_f64);
        let minor = major * (1.0 - flattening);
        let reduced = |latitude: f64| ((1.0 - flattening) * latitude.to_radians().tan()).atan();
        let (u1, u2) = (reduced(from.latitude), reduced(to.latitude));
        let difference = (to.longitude - from.longitude).to_radians();
        let mut lambda = difference;
        for _ in 0..200 {
            let (sin_l, cos_l) = lambda.sin_cos();
            let sin_sigma = (u2.cos() * sin_l).hypot(u1.cos() * u2.sin() - u1.sin() * u2.cos() * cos_l);
            if sin_sigma == 0.0 {
                return Some(0.0);
            }
            let cos_sigma = u1.sin() * u2.sin() + u1.cos() * u2.cos() * cos_l;
            let sigma = sin_sigma.atan2(cos_sigma);
            let sin_alpha = u1.cos() * u2.cos() * sin_l / sin_sigma;
            let cos2_alpha = 1.0 - sin_alpha * sin_alpha;
            let cos_2m = if cos2_alpha == 0.0 {
                0.0
            } else {
                cos_sigma - 2.0 * u1.sin() * u2.sin() / cos2_alpha
            };
            let c = flattening / 16.0 * cos2_alpha * (4.0 + flattening * (4.0 - 3.0 * cos2_alpha));
            let before = lambda;
            lambda = difference
                + (1.0 - c)
                    * flattening
                    * sin_alpha
                    * (sigma + c * sin_sigma * (cos_2m + c * cos_sigma * (2.0 * cos_2m * cos_2m - 1.0)));
            if (lambda - before).abs() < 1e-12 {
                let u = cos2_alpha * (major * major - minor * minor) / (minor * minor);
                let a = 1.0 + u / 16384.0 * (4096.0 + u * (-768.0 + u * (320.0 - 175.0 * u)));
                let b = u / 1024.0 * (256.0 + u * (-128.0 + u * (74.0 - 47.0 * u)));
                let inner = cos_sigma * (2.0 * cos_2m * cos_2m - 1.0)
                    - b / 6.0 * cos_2m * (4.0 * sin_sigma * sin_sigma - 3.0) * (4.0 * cos_2m * cos_2m - 3.0);
                return Some(minor * a * (sigma - b * sin_sigma * (cos_2m + b / 4.0 * inner)));
            }
        }
        None
    }

    #[test]
    fn the_reference_formula_agrees_with_published_geodesics() {
        // Flinders Peak to Buninyong, the worked example of the Australian geodetic manual, in GDA degrees.
        let flinders = Position::new(-37.951_033_417, 144.424_867_889);
        let buninyong = Position::new(-37.652_821_139, 143.926_495_528);
        assert!((vincenty(flinders, buninyong).unwrap() - 54_972.271).abs() < 0.01);
        // A quarter of a meridian.
        let quarter = vincenty(Position::new(0.0, 0.0), Position::new(90.0, 0.0)).unwrap();
        assert!((quarter - 10_001_965.729).abs() < 0.01, "{quarter}");
    }

    #[test]
    fn rule_4_4_a_thousandth_of_a_degree_north_is_111_metres() {
        let distance = Position::new(40.0, -75.0).distance_to(Position::new(40.001, -75.0));
        assert!((distance - 111.195_08).abs() < 1e-4, "{distance}");
    }

    #[test]
    fn rule_4_4_the_antimeridian_is_no_wall_and_the_pole_has_one_place() {
        let across = Position::new(0.0, 179.999).distance_to(Position::new(0.0, -179.999));
        assert!((across - 222.39).abs() < 0.01, "{across}");
        assert!(Position::new(90.0, 0.0).distance_to(Position::new(90.0, 135.0)) < 1e-6);
        assert!(Position::new(10.0, 180.0).distance_to(Position::new(10.0, -180.0)) < 1e-6);
        let opposite = Position::new(0.0, 0.0).distance_to(Position::new(0.0, 180.0));
        assert!((opposite - std::f64::consts::PI * EARTH_RADIUS_METERS).abs() < 1e-6);
        let nearly = Position::new(12.345_678_9, 98.765_432_1)
            .distance_to(Position::new(-12.345_678_9, -81.234_567_9));
        assert!(nearly.is_finite());
    }

    #[test]
    fn rule_4_1_what_can_be_believed() {
        let somewhere = Position::new(47.4, 8.5);
        assert!(
            somewhere.is_usable(None) && somewhere.is_usable(Some(0.0)) && somewhere.is_usable(Some(5_000.0))
        );
        assert!(!somewhere.is_usable(Some(-1.0)) && !somewhere.is_usable(Some(f64::NAN)));
        let null_island = Position::new(0.0, -0.0);
        assert!(
            !null_island.is_usable(None),
            "zero and zero without accuracy is nowhere"
        );
        assert!(null_island.is_usable(Some(10.0)), "a ship may be there");
        assert!(Position::new(0.0, 8.5).is_usable(None) && Position::new(5.0, 0.0).is_usable(None));
    }

    #[test]
    fn the_middle_of_places_on_both_sides_of_the_antimeridian_lies_between_them() {
        let middle = |places: &[(f64, f64)]| {
            let mut middle = Middle::default();
            for (latitude, longitude) in places {
                middle.add(Position::new(*latitude, *longitude));
            }
            middle.position()
        };
        let across = middle(&[(10.0, 179.0), (10.0, -179.0)]).unwrap();
        assert!(
            across.distance_to(Position::new(10.0, 180.0)) < 200.0,
            "{across:?}"
        );
        assert!((-180.0..180.0).contains(&across.longitude), "{across:?}");
        assert!(middle(&[(89.0, 0.0), (89.0, 180.0)]).unwrap().latitude > 89.999);
        assert_eq!(
            middle(&[(0.0, 0.0), (0.0, 180.0)]).unwrap(),
            Position::new(0.0, 0.0),
            "opposite places have no middle"
        );
        assert_eq!(middle(&[]), None);
    }

    #[test]
    fn degrees_minutes_seconds() {
        let text = Position::new(51.952_402_4, -7.632_400_9).sexagesimal();
        assert_eq!(
            text,
            ("51° 57' 8.649'' N".to_owned(), "7° 37' 56.643'' W".to_owned())
        );
        assert_eq!(
            Position::new(-0.999_999_999_9, 59.999_999_999_9).sexagesimal().0,
            "1° 0' 0.000'' S"
        );
    }

    proptest! {
        #[test]
        fn rule_4_4_distances_are_within_six_in_a_thousand_of_the_ellipsoid(
            from in (-90.0..=90.0_f64, -180.0..180.0_f64),
            to in (-90.0..=90.0_f64, -180.0..180.0_f64),
            near in (-0.01..0.01_f64, -0.01..0.01_f64),
        ) {
            let start = Position::new(from.0, from.1);
            let beside = Position::new((from.0 + near.0).clamp(-90.0, 90.0), from.1 + near.1);
            for end in [Position::new(to.0, to.1), beside] {
                if let Some(geodesic) = vincenty(start, end) {
                    let ours = start.distance_to(end);
                    prop_assert!((ours - geodesic).abs() <= 0.006 * geodesic + 1e-6, "{start:?} {end:?}: \
                                                                                      {ours} and {geodesic}");
                }
            }
        }

        #[test]
        fn distance_is_symmetric_and_zero_to_oneself(
            from in (-90.0..=90.0_f64, -180.0..180.0_f64),
            to in (-90.0..=90.0_f64, -180.0..180.0_f64)
        ) {
            let (one, other) = (Position::new(from.0, from.1), Position::new(to.0, to.1));
            prop_assert!((one.distance_to(other) - other.distance_to(one)).abs() < 1e-6);
            prop_assert!(one.distance_to(one) == 0.0);
        }
    }
}
