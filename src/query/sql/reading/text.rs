//! The text of a query before it is parsed: its limits, and the places of words in it.
//!
//! Nesting or chaining that is too deep is refused here, before any code recurses into it. Knows tokens only.

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, Word};

use crate::query::sql::errors::{SqlError, TextPosition};

/// The most bytes. What a person writes fits many times over; longer texts come from programs, which should
/// use parameters.
pub(super) const LONGEST_TEXT: usize = 64 << 10;
/// The most words and signs that join or wrap expressions and queries. Each may add a level of recursion.
const MOST_STEPS: usize = 400;
/// The most parentheses and brackets that are open at one place.
const MOST_OPEN: usize = 40;

/// A text as its tokens.
#[derive(Debug)]
pub(in crate::query::sql) struct QueryText {
    tokens: Vec<TokenWithSpan>,
}

impl QueryText {
    /// The text, unless it exceeds a limit.
    pub(in crate::query::sql) fn read(text: &str) -> Result<Self, SqlError> {
        if text.len() > LONGEST_TEXT {
            let length = text.len();
            return Err(SqlError::without_place(format!(
                "the query has {length} bytes; the limit is {LONGEST_TEXT}: ask in several queries, or move \
                 values into parameters"
            )));
        }
        let tokens = Tokenizer::new(&GenericDialect {}, text)
            .tokenize_with_location()
            .map_err(|error| SqlError::at(error.location.into(), error.message))?;
        let read = Self { tokens };
        read.refuse_depth()?;
        Ok(read)
    }

    pub(super) fn tokens(&self) -> &[TokenWithSpan] {
        &self.tokens
    }

    fn refuse_depth(&self) -> Result<(), SqlError> {
        let (mut steps, mut open) = (0, 0_usize);
        for TokenWithSpan { token, span } in &self.tokens {
            match token {
                Token::LParen | Token::LBracket | Token::LBrace => open += 1,
                Token::RParen | Token::RBracket | Token::RBrace => open = open.saturating_sub(1),
                _ => {}
            }
            steps += usize::from(is_step(token));
            if open > MOST_OPEN {
                let message = format!("more than {MOST_OPEN} parentheses are open here; nest less");
                return Err(SqlError::at(span.start.into(), message));
            }
            if steps > MOST_STEPS {
                let message = format!(
                    "the query joins more than {MOST_STEPS} expressions and queries up to here; ask in \
                     several queries, or use IN for a list of values"
                );
                return Err(SqlError::at(span.start.into(), message));
            }
        }
        Ok(())
    }

    /// The first place of a name, however it is quoted; for a compound name, that of its last part.
    pub(super) fn place_of(&self, name: &str) -> Option<TextPosition> {
        let last = name.rsplit('.').next().unwrap_or(name);
        let last = last.trim_matches('"').trim_end_matches("()");
        let found = |wanted: &str| {
            self.tokens.iter().find_map(|token| match &token.token {
                Token::Word(word) if spells(word, wanted) => Some(token.span.start.into()),
                Token::Placeholder(word) | Token::SingleQuotedString(word) if word == wanted => {
                    Some(token.span.start.into())
                }
                _ => None,
            })
        };
        found(name).or_else(|| found(last))
    }

    /// A name as it was written first, if there are capitals in it that do not count.
    pub(super) fn capitalized(&self, name: &str) -> Option<&str> {
        self.tokens.iter().find_map(|token| match &token.token {
            Token::Word(word) if word.quote_style.is_none() && spells(word, name) && word.value != name => {
                Some(word.value.as_str())
            }
            _ => None,
        })
    }

    /// The end of the text, without trailing space.
    pub(super) fn end(&self) -> Option<TextPosition> {
        let mut tokens = self.tokens.iter().rev();
        let last = tokens.find(|token| !matches!(token.token, Token::EOF | Token::Whitespace(_)));
        last.map(|token| token.span.end.into())
    }

    /// The words, in capitals, and their places.
    pub(super) fn words(&self) -> impl Iterator<Item = (String, TextPosition)> {
        self.tokens.iter().filter_map(|token| match &token.token {
            Token::Word(word) => Some((word.value.to_uppercase(), token.span.start.into())),
            _ => None,
        })
    }

    /// The first place of a word of the grammar at or after `from`.
    pub(super) fn word_from(&self, from: Location, word: &str) -> Option<TextPosition> {
        self.places_of(word)
            .find(|place| *place >= from)
            .map(TextPosition::from)
    }

    /// The last place of a word of the grammar before `end`.
    pub(super) fn word_before(&self, end: Location, word: &str) -> Option<TextPosition> {
        self.places_of(word)
            .take_while(|place| *place < end)
            .last()
            .map(TextPosition::from)
    }

    /// The place of a word of the grammar that is there once.
    pub(super) fn only_place_of(&self, word: &str) -> Option<TextPosition> {
        let mut places = self.places_of(word);
        let place = places.next()?;
        places.next().is_none().then(|| place.into())
    }

    fn places_of(&self, wanted: &str) -> impl Iterator<Item = Location> {
        self.tokens.iter().filter_map(move |token| match &token.token {
            Token::Word(word) if word.quote_style.is_none() && spells(word, wanted) => Some(token.span.start),
            _ => None,
        })
    }

    /// Where the text goes on after a statement.
    pub(super) fn second_statement(&self) -> Option<TextPosition> {
        let mut after = self.tokens.iter();
        after.find(|token| token.token == Token::SemiColon)?;
        let next =
            after.find(|token| !matches!(token.token, Token::SemiColon | Token::EOF | Token::Whitespace(_)));
        next.map(|token| token.span.start.into())
    }
}

fn spells(word: &Word, name: &str) -> bool {
    if word.quote_style.is_some() {
        word.value == name
    } else {
        word.value.eq_ignore_ascii_case(name)
    }
}

/// Whether a token may add a level of recursion to an expression or a query.
fn is_step(token: &Token) -> bool {
    match token {
        Token::Word(word) => matches!(
            word.keyword,
            Keyword::AND
                | Keyword::OR
                | Keyword::XOR
                | Keyword::NOT
                | Keyword::IS
                | Keyword::IN
                | Keyword::LIKE
                | Keyword::ILIKE
                | Keyword::RLIKE
                | Keyword::REGEXP
                | Keyword::SIMILAR
                | Keyword::BETWEEN
                | Keyword::AT
                | Keyword::COLLATE
                | Keyword::CASE
                | Keyword::DIV
                | Keyword::OVERLAPS
                | Keyword::OPERATOR
                | Keyword::MATCH
                | Keyword::MEMBER
                | Keyword::NOTNULL
                | Keyword::UNION
                | Keyword::INTERSECT
                | Keyword::EXCEPT
                | Keyword::MINUS
                | Keyword::JOIN
                | Keyword::SELECT
                | Keyword::PIVOT
                | Keyword::UNPIVOT
        ),
        Token::EOF
        | Token::Whitespace(_)
        | Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::DoubleQuotedString(_)
        | Token::DollarQuotedString(_)
        | Token::EscapedStringLiteral(_)
        | Token::UnicodeStringLiteral(_)
        | Token::NationalStringLiteral(_)
        | Token::HexStringLiteral(_)
        | Token::Placeholder(_)
        | Token::Comma
        | Token::SemiColon
        | Token::RParen
        | Token::RBracket
        | Token::RBrace
        | Token::LParen
        // The dot of `table.column` adds no level.
        | Token::Period => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_where_it_stands() {
        let text = QueryText::read("SELECT value,\n  \"Odd Name\"\nFROM heart_rate WHERE a = $when").unwrap();
        let place = |name: &str| text.place_of(name).map(|place| (place.line, place.column));
        assert_eq!(place("VALUE"), Some((1, 8)));
        assert_eq!(place("Odd Name"), Some((2, 3)));
        assert_eq!(place("odd name"), None);
        assert_eq!(place("almanac.own.heart_rate"), Some((3, 6)));
        assert_eq!(place("$when"), Some((3, 27)));
        let at = |line, column| Location { line, column };
        assert_eq!(text.word_from(at(1, 1), "from"), Some(at(3, 1).into()));
        assert_eq!(text.word_from(at(3, 2), "FROM"), None);
        assert_eq!(text.word_before(at(3, 6), "FROM"), Some(at(3, 1).into()));
        assert_eq!(text.word_before(at(3, 1), "FROM"), None);
        assert_eq!(text.only_place_of("from"), Some(at(3, 1).into()));
        assert_eq!(text.only_place_of("BETWEEN"), None);
        let twice = QueryText::read("SELECT 1 FROM a, (SELECT 2 FROM b)").unwrap();
        assert_eq!(twice.only_place_of("FROM"), None);
    }

    #[test]
    fn too_long_too_deep_and_too_chained_texts_are_refused() {
        let refused = [
            format!("SELECT '{}'", "a".repeat(LONGEST_TEXT)),
            format!("SELECT {}1{}", "(".repeat(100), ")".repeat(100)),
            format!("SELECT 1{}", " + 1".repeat(2_000)),
            format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(2_000)),
            format!("SELECT a{} FROM t", "[1]".repeat(2_000)),
            format!("SELECT {}true", "NOT ".repeat(2_000)),
            format!("SELECT 1{}", "::int".repeat(2_000)),
        ];
        for text in refused {
            assert!(QueryText::read(&text).is_err(), "{}", &text[..40]);
        }
        let list = format!("SELECT 1 IN ({}1)", "1, ".repeat(5_000));
        assert!(QueryText::read(&list).is_ok());
    }
}
