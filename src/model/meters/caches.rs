//! Shows how full caches are. They are asked only when somebody wants to know, so nothing is counted.

use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use crate::model::cache::Cache;

/// The caches that are watched. Cheap to clone; all clones watch the same.
#[derive(Clone, Default)]
pub struct CacheMeters(Arc<Mutex<Vec<Watched>>>);

struct Watched {
    kind: &'static str,
    holds: Box<dyn Fn() -> u64 + Send + Sync>,
    room: Box<dyn Fn() -> u64 + Send + Sync>,
}

impl fmt::Debug for CacheMeters {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("CacheMeters")
    }
}

impl CacheMeters {
    /// From now on shows how many bytes are in `cache`, which is the only one of its kind.
    pub fn watch<K, V>(&self, kind: &'static str, cache: &Cache<K, V>)
    where
        K: Hash + Eq + Send + Sync + 'static,
        V: Clone + Send + Sync + 'static,
    {
        let (holding, roomy) = (cache.clone(), cache.clone());
        let mut watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        watched.push(Watched {
            kind,
            holds: Box::new(move || holding.weight()),
            room: Box::new(move || roomy.capacity()),
        });
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(self.clone()));
    }
}

impl Collector for CacheMeters {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tell = |name, help, bytes: fn(&Watched) -> u64| {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            watched.iter().try_for_each(|cache| {
                let gauge = ConstGauge::new(i64::try_from(bytes(cache)).unwrap_or(i64::MAX));
                gauge.encode(family.encode_family(&[("kind", cache.kind)])?)
            })
        };
        tell("bytes", "Bytes that are kept in memory", |cache| (cache.holds)())?;
        tell("limit_bytes", "Bytes that may be kept in memory", |cache| {
            (cache.room)()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_tell_what_they_hold_and_may_hold() {
        let mut registry = Registry::with_prefix("almanac");
        let meters = CacheMeters::default();
        meters.register(registry.sub_registry_with_prefix("cache"));
        let cache = Cache::of_bytes(1_000, 100, |_: &u8, value: &Vec<u8>| value.len());
        meters.watch("answers", &cache);
        cache.insert(1, vec![0; 70]);
        let mut told = String::new();
        prometheus_client::encoding::text::encode(&mut told, &registry).unwrap();
        assert!(
            told.contains("\nalmanac_cache_bytes{kind=\"answers\"} 70\n"),
            "{told}"
        );
        assert!(
            told.contains("\nalmanac_cache_limit_bytes{kind=\"answers\"} 1000\n"),
            "{told}"
        );
        cache.clear();
        told.clear();
        prometheus_client::encoding::text::encode(&mut told, &registry).unwrap();
        assert!(
            told.contains("\nalmanac_cache_bytes{kind=\"answers\"} 0\n"),
            "{told}"
        );
    }
}
