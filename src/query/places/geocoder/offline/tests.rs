//! What the embedded list of places calls well-known landmarks, and where it knows no name.

use super::*;

/// A landmark, where it is, its country, and the place that is nearest; nothing where a landmark lies between
/// two places.
const KNOWN: &[(&str, f64, f64, &str, &str)] = &[
    ("Eiffel Tower", 48.8584, 2.2945, "fr", ""),
    ("Brandenburg Gate", 52.5163, 13.3777, "de", ""),
    ("Colosseum", 41.8902, 12.4922, "it", "Rome"),
    ("Reykjavik", 64.1466, -21.9426, "is", "Reykjavik"),
    ("Moscow Kremlin", 55.7520, 37.6175, "ru", "Moscow"),
    ("Bern", 46.9480, 7.4474, "ch", "Bern"),
    ("Tromso", 69.6492, 18.9553, "no", "Tromso"),
    ("Lisbon Belem", 38.6916, -9.2160, "pt", ""),
    ("Acropolis", 37.9715, 23.7257, "gr", "Athens"),
    ("Edinburgh castle", 55.9486, -3.1999, "gb", "Edinburgh"),
    ("Longyearbyen", 78.2232, 15.6267, "sj", "Longyearbyen"),
    ("Cairo Tahrir", 30.0444, 31.2357, "eg", "Cairo"),
    ("Nairobi", -1.2864, 36.8172, "ke", "Nairobi"),
    ("Cape Town", -33.9249, 18.4241, "za", "Cape Town"),
    ("Lagos", 6.4550, 3.3841, "ng", "Lagos"),
    ("Casablanca", 33.5731, -7.5898, "ma", "Casablanca"),
    ("Addis Ababa", 9.0250, 38.7469, "et", "Addis Ababa"),
    ("Antananarivo", -18.8792, 47.5079, "mg", "Antananarivo"),
    ("Timbuktu", 16.7735, -3.0074, "ml", "Timbuktu"),
    ("Windhoek", -22.5609, 17.0658, "na", "Windhoek"),
    ("Tokyo station", 35.6812, 139.7671, "jp", "Tokyo"),
    ("Beijing Forbidden City", 39.9163, 116.3972, "cn", "Beijing"),
    ("Delhi Red Fort", 28.6562, 77.2410, "in", "Delhi"),
    ("Singapore", 1.2897, 103.8501, "sg", "Singapore"),
    ("Ulaanbaatar", 47.9184, 106.9177, "mn", "Ulaanbaatar"),
    ("Kathmandu", 27.7172, 85.3240, "np", "Kathmandu"),
    ("Dubai", 25.1972, 55.2744, "ae", "Dubai"),
    ("Amman", 31.9539, 35.9106, "jo", "Amman"),
    ("Bangkok", 13.7500, 100.4913, "th", "Bangkok"),
    ("Yakutsk", 62.0355, 129.6755, "ru", "Yakutsk"),
    ("Jakarta", -6.1754, 106.8272, "id", "Jakarta"),
    ("Manhattan", 40.7831, -73.9712, "us", "Manhattan"),
    ("Golden Gate", 37.8199, -122.4783, "us", ""),
    ("Mexico Zocalo", 19.4326, -99.1332, "mx", "Mexico City"),
    ("Toronto", 43.6426, -79.3871, "ca", "Toronto"),
    ("Anchorage", 61.2181, -149.9003, "us", "Anchorage"),
    ("Havana", 23.1136, -82.3666, "cu", ""),
    ("Panama", 8.9824, -79.5199, "pa", "Panama"),
    ("Nuuk", 64.1814, -51.6941, "gl", "Nuuk"),
    ("Honolulu", 21.3069, -157.8583, "us", "Honolulu"),
    ("Rio Cristo", -22.9519, -43.2105, "br", "Rio de Janeiro"),
    ("Buenos Aires", -34.6037, -58.3816, "ar", "Buenos Aires"),
    ("Machu Picchu", -13.1631, -72.5450, "pe", ""),
    ("Bogota", 4.7110, -74.0721, "co", ""),
    ("Ushuaia", -54.8019, -68.3030, "ar", "Ushuaia"),
    ("Santiago", -33.4489, -70.6693, "cl", "Santiago"),
    ("Sydney Opera", -33.8568, 151.2153, "au", ""),
    ("Perth", -31.9523, 115.8613, "au", "Perth"),
    ("Auckland", -36.8485, 174.7633, "nz", "Auckland"),
    ("Suva", -18.1416, 178.4419, "fj", "Suva"),
    ("Port Moresby", -9.4438, 147.1803, "pg", "Port Moresby"),
    ("Apia", -13.8333, -171.7667, "ws", "Apia"),
    ("McMurdo", -77.8419, 166.6863, "aq", "McMurdo Station"),
];

async fn named(geocoder: &Offline, latitude: f64, longitude: f64) -> Option<Arc<Place>> {
    let nobody = PersonId(uuid::Uuid::nil());
    geocoder
        .locate(nobody, Position::new(latitude, longitude))
        .await
        .unwrap()
}

#[tokio::test]
async fn rule_4_7_known_places_on_all_continents_have_their_names() {
    assert!(KNOWN.len() >= 50);
    let geocoder = Offline::default();
    for (landmark, latitude, longitude, country, city) in KNOWN {
        let place = named(&geocoder, *latitude, *longitude)
            .await
            .unwrap_or_else(|| panic!("nothing at {landmark}"));
        assert_eq!(
            place.country_code.as_deref(),
            Some(*country),
            "{landmark}: {place:?}"
        );
        assert!(
            city.is_empty() || place.city.as_deref() == Some(*city),
            "{landmark}: {place:?}"
        );
        assert!(
            place.country.is_some() && place.distance < 20_000.0,
            "{landmark}: {place:?}"
        );
        assert!(
            place.formatted.contains(place.country.as_deref().unwrap()),
            "{landmark}: {place:?}"
        );
    }
}

#[tokio::test]
async fn rule_4_7_nothing_is_near_the_open_sea_and_the_poles() {
    let geocoder = Offline::default();
    for (latitude, longitude) in [
        (90.0, 0.0),
        (-90.0, 0.0),
        (-90.0, 123.0),
        (0.0, -140.0),
        (0.0, 0.0),
        (-48.8767, -123.3933),
    ] {
        assert_eq!(
            named(&geocoder, latitude, longitude).await,
            None,
            "{latitude} {longitude}"
        );
    }
}

#[tokio::test]
async fn the_antimeridian_is_no_wall() {
    let geocoder = Offline::default();
    let (east, west) = (
        named(&geocoder, -16.8, 180.0).await.unwrap(),
        named(&geocoder, -16.8, -180.0).await.unwrap(),
    );
    assert_eq!(
        (east.country_code.as_deref(), &east.formatted),
        (Some("fj"), &west.formatted)
    );
    assert!((east.distance - west.distance).abs() < 1e-3);
}

#[tokio::test]
async fn every_country_that_has_a_place_has_a_name() {
    let gazetteer = Gazetteer::read().unwrap();
    assert!(gazetteer.countries.len() >= 249);
    assert!(
        gazetteer
            .countries
            .values()
            .all(|country| country.code.len() == 2 && !country.name.is_empty())
    );
    let zoneless = gazetteer
        .countries
        .values()
        .filter_map(|country| country.time_zone.as_deref());
    for zone in zoneless {
        assert!(zone.parse::<chrono_tz::Tz>().is_ok(), "{zone}");
    }
}

#[tokio::test]
async fn a_line_names_no_place_twice() {
    let geocoder = Offline::default();
    let place = named(&geocoder, 1.2897, 103.8501).await.unwrap();
    assert_eq!(place.formatted, "Singapore");
    assert_eq!(place.time_zone.as_deref(), Some("Asia/Singapore"));
    let place = named(&geocoder, 46.948, 7.4474).await.unwrap();
    assert_eq!(place.formatted, "Bern, Switzerland");
    assert!(place.attribution.contains("GeoNames") && place.attribution.contains("CC BY 4.0"));
}
