//! Terms of UCUM, the Unified Code for Units of Measure: prefixes on atoms, products, quotients, powers.
//!
//! The table of units names what people write every day; this finds the meaning of everything else that is
//! made of the same atoms. Prefixes and atoms are data, of `schemas/units.json`. Factors are fractions of
//! integers, so that exact definitions stay exact. Pure.

use std::collections::HashMap;

use serde::Deserialize;

/// Longer terms are not read.
const MOST_BYTES: usize = 128;
/// No quantity has a greater power of a unit, or one of ten.
const GREATEST_POWER: i32 = 9;
const GREATEST_POWER_OF_TEN: i32 = 24;
/// The most independent units.
const BASES: usize = 8;

/// A positive fraction in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ratio {
    pub numerator: u128,
    pub denominator: u128,
}

impl Ratio {
    pub(super) const ONE: Self = Self {
        numerator: 1,
        denominator: 1,
    };

    pub(super) const fn new(numerator: u128, denominator: u128) -> Self {
        let common = greatest_common_divisor(numerator, denominator);
        Self {
            numerator: numerator / common,
            denominator: denominator / common,
        }
    }

    fn ten_to(power: i32) -> Option<Self> {
        let ten = Self {
            numerator: 10,
            ..Self::ONE
        };
        ten.to(power)
    }

    const fn inverse(self) -> Self {
        Self {
            numerator: self.denominator,
            denominator: self.numerator,
        }
    }

    /// `None` if it is too large or too fine.
    pub(super) fn times(self, other: Self) -> Option<Self> {
        let one = Self::new(self.numerator, other.denominator);
        let two = Self::new(other.numerator, self.denominator);
        Some(Self {
            numerator: one.numerator.checked_mul(two.numerator)?,
            denominator: one.denominator.checked_mul(two.denominator)?,
        })
    }

    pub(super) fn over(self, other: Self) -> Option<Self> {
        self.times(other.inverse())
    }

    fn to(self, power: i32) -> Option<Self> {
        let base = if power < 0 { self.inverse() } else { self };
        (0..power.unsigned_abs()).try_fold(Self::ONE, |product, _| product.times(base))
    }
}

const fn greatest_common_divisor(mut left: u128, mut right: u128) -> u128 {
    while right != 0 {
        (left, right) = (right, left % right);
    }
    if left == 0 { 1 } else { left }
}

/// What a term means: so many of a product of powers of the independent units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Meaning {
    pub factor: Ratio,
    powers: [i32; BASES],
    /// It says of what things it is a number.
    counts: bool,
    /// Grams of one mole, where the term tells.
    pub grams_per_mole: Option<f64>,
}

impl Meaning {
    const ONE: Self = Self {
        factor: Ratio::ONE,
        powers: [0; BASES],
        counts: false,
        grams_per_mole: None,
    };

    const fn number(factor: Ratio) -> Self {
        Self { factor, ..Self::ONE }
    }

    fn times(self, other: Self) -> Option<Self> {
        let mut powers = self.powers;
        for (power, more) in powers.iter_mut().zip(other.powers) {
            *power += more;
        }
        Some(Self {
            factor: self.factor.times(other.factor)?,
            powers,
            counts: self.counts || other.counts,
            grams_per_mole: self.grams_per_mole.or(other.grams_per_mole),
        })
    }

    fn to(self, power: i32) -> Option<Self> {
        Some(Self {
            factor: self.factor.to(power)?,
            powers: self.powers.map(|base| base * power),
            ..self
        })
    }

    /// Whether both measure the same. A number of things is not a share of something, and neither is a number
    /// of other things.
    fn is_comparable(&self, other: &Self) -> bool {
        let is_number = self.powers == [0; BASES];
        self.powers == other.powers && !(is_number && (self.counts || other.counts))
    }
}

/// What terms are made of, as it stands in the table.
#[derive(Debug, Deserialize)]
pub(super) struct TermsTable {
    /// Powers of ten.
    prefixes: HashMap<String, i32>,
    /// Units that are independent of each other. They take prefixes.
    bases: Vec<String>,
    atoms: Vec<Atom>,
    /// A term for the base unit of each dimension.
    dimensions: HashMap<String, String>,
}

#[derive(Debug, Deserialize)]
struct Atom {
    names: Vec<String>,
    /// So many of another term.
    factor: [u64; 2],
    of: String,
    #[serde(default)]
    takes_prefixes: bool,
    /// Without a prefix it is written for something else.
    #[serde(default)]
    needs_prefix: bool,
}

#[derive(Clone, Copy, Debug)]
struct KnownAtom {
    meaning: Meaning,
    takes_prefixes: bool,
    needs_prefix: bool,
}

#[derive(Debug)]
pub(super) struct Terms {
    prefixes: HashMap<String, i32>,
    atoms: HashMap<String, KnownAtom>,
    dimensions: Vec<(String, Meaning)>,
}

/// A definition that means nothing.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a term")]
pub struct BadDefinition(String);

impl Terms {
    pub(super) fn new(given: TermsTable) -> Result<Self, BadDefinition> {
        let mut terms = Self {
            prefixes: given.prefixes,
            atoms: HashMap::new(),
            dimensions: Vec::new(),
        };
        for (base, name) in given.bases.into_iter().enumerate() {
            let mut meaning = Meaning::ONE;
            let power = meaning.powers.get_mut(base);
            *power.ok_or_else(|| BadDefinition(name.clone()))? = 1;
            let known = KnownAtom {
                meaning,
                takes_prefixes: true,
                needs_prefix: false,
            };
            terms.atoms.insert(name, known);
        }
        for atom in given.atoms {
            let [numerator, denominator] = atom.factor.map(u128::from);
            let many = Meaning::number(Ratio::new(numerator, denominator));
            let meaning = terms.meaning(&atom.of).and_then(|one| many.times(one));
            let known = KnownAtom {
                meaning: meaning.ok_or(BadDefinition(atom.of))?,
                takes_prefixes: atom.takes_prefixes,
                needs_prefix: atom.needs_prefix,
            };
            terms
                .atoms
                .extend(atom.names.into_iter().map(|name| (name, known)));
        }
        for (dimension, base) in given.dimensions {
            let meaning = terms.meaning(&base).ok_or(BadDefinition(base))?;
            terms.dimensions.push((dimension, meaning));
        }
        Ok(terms)
    }

    /// The dimensions that a term belongs to, each with its factor to the base unit; `None` if it means
    /// nothing, or if its factor has too many digits.
    pub(super) fn read(&self, term: &str) -> Option<Vec<(&str, Meaning)>> {
        let meaning = self.meaning(term)?;
        let mut found = Vec::new();
        for (dimension, base) in self
            .dimensions
            .iter()
            .filter(|(_, base)| base.is_comparable(&meaning))
        {
            let factor = meaning.factor.over(base.factor)?;
            found.push((dimension.as_str(), Meaning { factor, ..meaning }));
        }
        Some(found)
    }

    fn meaning(&self, term: &str) -> Option<Meaning> {
        if term.len() > MOST_BYTES {
            return None;
        }
        let mut reader = Reader {
            terms: self,
            rest: term,
        };
        let meaning = if reader.takes("/") {
            let below = reader.component()?.to(-1)?;
            reader.factors(below)?
        } else {
            reader.term()?
        };
        reader.rest.is_empty().then_some(meaning)
    }

    /// An atom, or one with a prefix.
    fn atom(&self, name: &str) -> Option<Meaning> {
        if let Some(known) = self.atoms.get(name).filter(|known| !known.needs_prefix) {
            return Some(known.meaning);
        }
        (1..name.len()).find_map(|split| {
            let (prefix, name) = name.split_at_checked(split)?;
            let power = self.prefixes.get(prefix)?;
            let known = self.atoms.get(name).filter(|known| known.takes_prefixes)?;
            Meaning::number(Ratio::ten_to(*power)?).times(known.meaning)
        })
    }
}

/// A term being read: what is left of its text.
struct Reader<'t> {
    terms: &'t Terms,
    rest: &'t str,
}

impl<'t> Reader<'t> {
    fn takes(&mut self, mark: &str) -> bool {
        let rest = self.rest.strip_prefix(mark);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Takes what comes before a place.
    fn take(&mut self, end: usize) -> Option<&'t str> {
        let (taken, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest;
        Some(taken)
    }

    /// Takes characters for as long as they are like this.
    fn take_while(&mut self, is_taken: impl Fn(char) -> bool) -> &'t str {
        let end = self
            .rest
            .find(|other| !is_taken(other))
            .unwrap_or(self.rest.len());
        self.take(end).unwrap_or_default()
    }

    fn term(&mut self) -> Option<Meaning> {
        let first = self.component()?;
        self.factors(first)
    }

    /// Multiplies and divides from left to right.
    fn factors(&mut self, mut product: Meaning) -> Option<Meaning> {
        loop {
            if [".", "*", "·", "⋅"].into_iter().any(|mark| self.takes(mark)) {
                product = product.times(self.component()?)?;
            } else if self.takes("/") {
                product = product.times(self.component()?.to(-1)?)?;
            } else {
                return Some(product);
            }
        }
    }

    fn component(&mut self) -> Option<Meaning> {
        if self.takes("(") {
            let inner = self.term()?;
            return self.takes(")").then_some(inner);
        }
        if self.rest.starts_with('{') {
            return self.annotated(Meaning::ONE);
        }
        if self.takes("10*") || self.takes("10^") {
            let power = self.power(GREATEST_POWER_OF_TEN)?;
            return self.annotated(Meaning::number(Ratio::ten_to(power)?));
        }
        let digits = self.take_while(|digit| digit.is_ascii_digit());
        let unit = if digits.is_empty() {
            self.unit()?
        } else {
            let number: u128 = digits.parse().ok().filter(|number| *number > 0)?;
            Meaning::number(Ratio::new(number, 1))
        };
        self.annotated(unit)
    }

    /// What stands in braces says what is meant, and changes nothing.
    fn annotated(&mut self, mut meaning: Meaning) -> Option<Meaning> {
        while self.takes("{") {
            let end = self.rest.find('}')?;
            self.take(end + 1)?;
            meaning.counts = true;
        }
        Some(meaning)
    }

    /// An atom with its prefix, and its power.
    fn unit(&mut self) -> Option<Meaning> {
        let mut name = String::new();
        loop {
            let letters =
                self.take_while(|letter| letter.is_alphabetic() || matches!(letter, '_' | '%' | '‰'));
            name.push_str(letters);
            if !self.rest.starts_with('[') {
                break;
            }
            let end = self.rest.find(']')?;
            name.push_str(self.take(end + 1)?);
        }
        let counts = name == "count";
        let mut meaning = if counts {
            Meaning {
                counts,
                ..Meaning::ONE
            }
        } else {
            // The sign of micro has two code points.
            self.terms.atom(&name.replace(['µ', 'μ'], "u"))?
        };
        if self.takes("<") {
            let end = self.rest.find('>')?;
            let grams: f64 = self.take(end)?.parse().ok()?;
            if !name.ends_with("mol") || grams.is_nan() || grams <= 0.0 {
                return None;
            }
            meaning.grams_per_mole = Some(grams);
            self.take(1)?;
        }
        let has_power = self.takes("^") || self.rest.starts_with(['-', '+']);
        if has_power || self.rest.starts_with(|digit: char| digit.is_ascii_digit()) {
            meaning = meaning.to(self.power(GREATEST_POWER)?)?;
        } else if self.takes("²") {
            meaning = meaning.to(2)?;
        } else if self.takes("³") {
            meaning = meaning.to(3)?;
        }
        Some(meaning)
    }

    fn power(&mut self, greatest: i32) -> Option<i32> {
        let is_negative = self.takes("-");
        if !is_negative {
            self.takes("+");
        }
        let digits = self.take_while(|digit| digit.is_ascii_digit());
        let power: i32 = digits.parse().ok()?;
        (1..=greatest)
            .contains(&power)
            .then_some(if is_negative { -power } else { power })
    }
}
