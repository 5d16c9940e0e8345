//! A grammar of queries, sown from seeds: whatever it says is answered or refused, and nothing of another
//! person comes out.

use std::fmt::Write as _;

use super::query;
use crate::harness::{Person, Setup, heart_rate, id, instant, steps};
use crate::sharing::{share, share_of};

const QUERIES: u64 = 400;
/// What only the stranger has.
const SECRET: f64 = 987_654.25;

/// A sequence that a seed decides.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % sides as u64) as usize
    }

    fn pick(&mut self, from: &[&str]) -> String {
        from[self.roll(from.len())].to_owned()
    }
}

const COLUMNS: [&str; 9] = [
    "value",
    "start_date",
    "end_date",
    "uuid",
    "unit",
    "source_properties",
    "metadata",
    "extras",
    "a",
];
const FUNCTIONS: [&str; 43] = [
    "abs",
    "lower",
    "upper",
    "length",
    "date_trunc",
    "date_part",
    "local_day",
    "coalesce",
    "nullif",
    "concat",
    "substr",
    "round",
    "sqrt",
    "ln",
    "to_char",
    "make_array",
    "array_length",
    "struct",
    "arrow_typeof",
    "md5",
    "regexp_like",
    "regexp_replace",
    "replace",
    "split_part",
    "trim",
    "reverse",
    "left",
    "power",
    "date_bin",
    "to_timestamp",
    "arrow_cast",
    "greatest",
    "chr",
    "factorial",
    "gcd",
    "log",
    "make_date",
    "now",
    "random",
    "uuid",
    "lpad",
    "rpad",
    "repeat",
];
const TOTALS: [&str; 14] = [
    "count",
    "sum",
    "avg",
    "min",
    "max",
    "median",
    "stddev",
    "array_agg",
    "first_value",
    "string_agg",
    "approx_distinct",
    "corr",
    "bool_and",
    "approx_percentile_cont",
];
const TYPES: [&str; 9] = [
    "INT",
    "BIGINT",
    "DOUBLE",
    "VARCHAR",
    "DATE",
    "TIMESTAMP",
    "BOOLEAN",
    "DECIMAL(10,2)",
    "INTERVAL",
];
const OPERATORS: [&str; 17] = [
    "+",
    "-",
    "*",
    "/",
    "%",
    "=",
    "<>",
    "<",
    ">=",
    "AND",
    "OR",
    "||",
    "LIKE",
    "~",
    "IS DISTINCT FROM",
    "&",
    "<<",
];

/// A number that is one, most of the time.
fn figure(dice: &mut Dice, depth: usize) -> String {
    match dice.roll(if depth == 0 { 3 } else { 7 }) {
        0 => format!("{}", dice.roll(100)),
        1 | 2 => "value".to_owned(),
        3 => format!(
            "({} {} {})",
            figure(dice, depth - 1),
            dice.pick(&["+", "-", "*", "/", "%"]),
            figure(dice, depth - 1)
        ),
        4 => format!(
            "{}({})",
            dice.pick(&["abs", "sqrt", "round", "floor", "exp", "ln"]),
            figure(dice, depth - 1)
        ),
        5 => format!(
            "coalesce({}, {})",
            figure(dice, depth - 1),
            figure(dice, depth - 1)
        ),
        _ => format!(
            "(SELECT avg(value) FROM {})",
            dice.pick(&["heart_rate", "$SHARED.heart_rate", "step_count"])
        ),
    }
}

/// A query that has a meaning, most of the time.
fn sensible(dice: &mut Dice) -> String {
    let from = dice.pick(&[
        "heart_rate",
        "step_count",
        "$SHARED.heart_rate",
        "(SELECT * FROM heart_rate) AS inner_rows",
    ]);
    let condition = format!(
        "{} {} {}",
        figure(dice, 1),
        dice.pick(&["<", ">", "=", "<>"]),
        figure(dice, 1)
    );
    match dice.roll(4) {
        0 => format!(
            "SELECT {} AS a, {} AS b FROM {from} WHERE {condition} ORDER BY a LIMIT 9",
            figure(dice, 2),
            figure(dice, 2)
        ),
        1 => format!(
            "SELECT local_day(start_date, 'UTC') AS day, {}({}) FROM {from} GROUP BY day",
            dice.pick(&["sum", "avg", "min", "max", "count", "median"]),
            figure(dice, 2)
        ),
        2 => format!(
            "SELECT row_number() OVER (ORDER BY start_date), {} FROM {from} WHERE start_date > \
             '2024-05-01T0{}:00:00Z'",
            figure(dice, 2),
            dice.roll(9)
        ),
        _ => format!(
            "SELECT count(*) FROM {from} AS l JOIN heart_rate AS r ON l.start_date = r.start_date WHERE \
             l.value <> {}",
            dice.roll(90)
        ),
    }
}

fn value(dice: &mut Dice, depth: usize) -> String {
    if depth == 0 {
        return match dice.roll(8) {
            0 => "NULL".to_owned(),
            1 => format!("{}", dice.roll(1000) as i64 - 500),
            2 => "9223372036854775807".to_owned(),
            3 => "1.5e300".to_owned(),
            4 => dice.pick(&[
                "'x'",
                "'2024-05-01'",
                "''",
                "'%'",
                "'['",
                "TIMESTAMP '2024-05-01'",
                "INTERVAL '1 day'",
            ]),
            _ => dice.pick(&COLUMNS),
        };
    }
    let next = |dice: &mut Dice| value(dice, depth - 1);
    match dice.roll(11) {
        0 | 1 => format!("({} {} {})", next(dice), dice.pick(&OPERATORS), next(dice)),
        2 | 3 => {
            let arguments: Vec<String> = (0..dice.roll(4)).map(|_| next(dice)).collect();
            format!("{}({})", dice.pick(&FUNCTIONS), arguments.join(", "))
        }
        4 => format!("CAST({} AS {})", next(dice), dice.pick(&TYPES)),
        5 => format!(
            "CASE WHEN {} THEN {} ELSE {} END",
            next(dice),
            next(dice),
            next(dice)
        ),
        6 => format!("{} IN ({}, {})", next(dice), next(dice), next(dice)),
        7 => format!("{} BETWEEN {} AND {}", next(dice), next(dice), next(dice)),
        8 => format!(
            "(SELECT {}({}) FROM {})",
            dice.pick(&TOTALS),
            next(dice),
            table(dice, 0)
        ),
        9 => format!("[{}, {}]", next(dice), next(dice)),
        _ => format!("NOT {}", next(dice)),
    }
}

fn table(dice: &mut Dice, depth: usize) -> String {
    if depth == 0 {
        return dice.pick(&[
            "heart_rate",
            "step_count",
            "sleep_stage",
            "event",
            "series('HeartRate', '1d')",
            "sleep_cycles()",
            "sleep_agg()",
            "location_series()",
            "information_schema.columns",
            "$SHARED.heart_rate",
            "$SHARED.step_count",
            "$STRANGER.heart_rate",
            "(VALUES (1), (2)) AS v(a)",
            "series('StepCount', 3600)",
        ]);
    }
    match dice.roll(4) {
        0 => format!("({}) AS t{}", select(dice, depth - 1), dice.roll(9)),
        1 => {
            let kind = dice.pick(&[
                "JOIN",
                "LEFT JOIN",
                "FULL JOIN",
                "CROSS JOIN",
                "LEFT SEMI JOIN",
                ",",
            ]);
            let (left, right) = (table(dice, depth - 1), table(dice, 0));
            let on = if kind.contains("CROSS") || kind == "," {
                ""
            } else {
                " ON true"
            };
            format!("{left} {kind} {right} AS j{}{on}", dice.roll(9))
        }
        _ => table(dice, 0),
    }
}

fn select(dice: &mut Dice, depth: usize) -> String {
    let columns: Vec<String> = match dice.roll(5) {
        0 => vec!["*".to_owned()],
        1 => vec![format!("{}({})", dice.pick(&TOTALS), value(dice, depth))],
        2 => vec![format!(
            "{}({}) OVER (ORDER BY {})",
            dice.pick(&TOTALS),
            value(dice, 0),
            value(dice, 0)
        )],
        _ => (0..=dice.roll(3))
            .map(|n| format!("{} AS c{n}", value(dice, depth)))
            .collect(),
    };
    let mut text = format!("SELECT {} FROM {}", columns.join(", "), table(dice, depth));
    if dice.roll(2) == 0 {
        let _written = write!(text, " WHERE {}", value(dice, depth));
    }
    if dice.roll(4) == 0 {
        let _written = write!(text, " GROUP BY {}", value(dice, 0));
    }
    if dice.roll(4) == 0 {
        let _written = write!(text, " ORDER BY {}", value(dice, 0));
    }
    if dice.roll(6) == 0 {
        let _written = write!(text, " UNION ALL {}", select(dice, 0));
    }
    if dice.roll(3) == 0 {
        let _written = write!(text, " LIMIT {}", dice.roll(50));
    }
    text
}

/// Now and then some of it is lost or doubled on the way.
fn garbled(dice: &mut Dice, text: String) -> String {
    if dice.roll(5) > 0 {
        return text;
    }
    let mut words: Vec<&str> = text.split(' ').collect();
    let place = dice.roll(words.len());
    if dice.roll(2) == 0 {
        words.remove(place);
    } else {
        words.insert(place, words[dice.roll(words.len())]);
    }
    words.join(" ")
}

async fn filled(person: &Person, first: u32, value: f64) {
    let beats: Vec<_> = (0..40)
        .map(|n| heart_rate(id(first + n), &instant(n * 1_800), value))
        .collect();
    person.records("HeartRate", &beats).await;
    let walked: Vec<_> = (0..20)
        .map(|n| {
            steps(
                id(first + 100 + n),
                &instant(n * 3_000),
                &instant(n * 3_000 + 900),
                value,
            )
        })
        .collect();
    person.records("StepCount", &walked).await;
}

#[tokio::test]
async fn whatever_is_asked_is_answered_or_refused_and_tells_of_nobody_else() {
    let server = Setup::default().with("ALMANAC_QUERY_DEADLINE", "5s").start();
    let (person, sharer, stranger) = (server.person(), server.person(), server.person());
    filled(&person, 0, 61.0).await;
    filled(&sharer, 1_000, 62.0).await;
    filled(&stranger, 2_000, SECRET).await;
    share(&sharer, &share_of(&["HeartRate"], &person)).await;
    // What the sharer keeps looks as secret as what the stranger has.
    let kept: Vec<_> = (0..5)
        .map(|n| steps(id(5_000 + n), &instant(n), &instant(n + 9), SECRET))
        .collect();
    sharer.records("StepCount", &kept).await;
    let mut answered = 0;
    for seed in 0..QUERIES {
        let dice = &mut Dice(seed);
        let depth = 1 + dice.roll(3);
        let text = if seed % 2 == 0 {
            sensible(dice)
        } else {
            select(dice, depth)
        };
        let text = garbled(dice, text);
        let text = text
            .replace("$SHARED", &format!("\"{}\"", sharer.id))
            .replace("$STRANGER", &format!("\"{}\"", stranger.id));
        let reply = query(&person, &text).await;
        assert!(
            matches!(reply.status, 200 | 422 | 504),
            "seed {seed}: {text}\n{reply}"
        );
        answered += usize::from(reply.status == 200);
        let body = String::from_utf8_lossy(&reply.body);
        assert!(!body.contains("987654"), "seed {seed}: {text}\n{body}");
    }
    assert!(
        answered > QUERIES as usize / 5,
        "only {answered} queries made sense"
    );
    let log = server.log();
    assert!(!log.contains("panicked"), "{log}");
}
