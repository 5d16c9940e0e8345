//! The Prometheus text, read back.

/// Every sample of one scrape.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    samples: Vec<(String, f64)>,
}

impl Metrics {
    pub(crate) fn parse(text: &str) -> Self {
        let samples = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| {
                let (name, value) = line.rsplit_once(' ')?;
                Some((name.to_owned(), value.parse().ok()?))
            });
        Self {
            samples: samples.collect(),
        }
    }

    /// The sum of all samples whose name, with its labels, contains every one of `parts`.
    pub(crate) fn sum(&self, parts: &[&str]) -> f64 {
        self.matching(parts).map(|(_, value)| value).sum()
    }

    pub(crate) fn has(&self, parts: &[&str]) -> bool {
        self.matching(parts).next().is_some()
    }

    fn matching<'a>(&'a self, parts: &'a [&str]) -> impl Iterator<Item = &'a (String, f64)> {
        self.samples
            .iter()
            .filter(|(name, _)| parts.iter().all(|part| name.contains(part)))
    }
}
