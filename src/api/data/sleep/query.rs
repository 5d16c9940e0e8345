//! What a question about sleep says, once its text is read.

use crate::api::query_params::{FromParams, Params};
use crate::model::duration::{Truncation, parse_length};
use crate::model::time::TimeRange;
use crate::model::zone::Zone;
use crate::output::OutputMethod;
use crate::query::sleep::spec::{Function, Mode};

/// Two hours part one sleep from the next.
const USUAL_GAP: i64 = 2 * 3_600_000_000;

/// Which cycles, and in which form.
#[derive(Debug)]
pub struct CyclesQuery {
    pub range: TimeRange,
    pub output: OutputMethod,
    pub gap: i64,
    pub stages: Option<Vec<i64>>,
    pub gap_stages: Vec<i64>,
    pub clip: bool,
}

impl FromParams for CyclesQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let (range, output) = (params.range(), params.required_choice("output"));
        let gap = params.text("cycle_gap").map(|text| parse_length(&text));
        let gap = gap.unwrap_or(Ok(USUAL_GAP)).map_err(|error| {
            params.fault("cycle_gap", "value_error", error.to_string());
        });
        let stages = stage_list(params, "stages", Emptiness::Refused);
        let gap_stages = stage_list(params, "gap_stages", Emptiness::Allowed).unwrap_or_default();
        let clip = params.flag("clip_to_range").unwrap_or(true);
        Some(Self {
            range: range?,
            output: output?,
            gap: gap.ok()?,
            stages,
            gap_stages,
            clip,
        })
    }
}

/// Items of a list that is repeated, or has commas, or is written like a list of JSON; `None` when it was not
/// sent.
pub fn items(params: &mut Params<'_>, name: &str) -> Option<Vec<String>> {
    let sent = params.repeated(name);
    if sent.is_empty() {
        return None;
    }
    let bare = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
    let list = sent.iter().flat_map(|value| {
        let value = value.trim();
        let inside = value
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .unwrap_or(value);
        inside.split(',').map(bare)
    });
    Some(list.filter(|item| !item.is_empty()).collect())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Emptiness {
    Allowed,
    Refused,
}

fn stage_list(params: &mut Params<'_>, name: &str, emptiness: Emptiness) -> Option<Vec<i64>> {
    let items = items(params, name)?;
    if items.is_empty() && emptiness == Emptiness::Refused {
        params.fault(
            name,
            "value_error",
            "no stage is named; name at least one, or leave this parameter out for all of them",
        );
    }
    let mut stages = Vec::with_capacity(items.len());
    for item in items {
        match item.parse() {
            Ok(stage) => stages.push(stage),
            Err(_) => params.fault(
                name,
                "int_parsing",
                format!("{item:?} is not the number of a stage"),
            ),
        }
    }
    Some(stages)
}

/// Which rows of a hypnogram.
#[derive(Debug)]
pub struct StagesQuery {
    pub cycles: CyclesQuery,
    pub merge_overlapping: bool,
    pub merge_contiguous: bool,
}

impl FromParams for StagesQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let merge_overlapping = params.flag("merge_overlapping").unwrap_or(true);
        let merge_contiguous = params.flag("merge_contiguous").unwrap_or(true);
        Some(Self {
            cycles: CyclesQuery::from_params(params)?,
            merge_overlapping,
            merge_contiguous,
        })
    }
}

/// Which totals.
#[derive(Debug)]
pub struct AggregateQuery {
    pub cycles: CyclesQuery,
    pub mode: Mode,
    pub period: Truncation,
    pub functions: Vec<Function>,
    pub zone: Zone,
}

impl FromParams for AggregateQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let mode = params.choice("mode").unwrap_or_default();
        let period = params.text("period").map(|text| Truncation::parse(&text));
        let period = period.unwrap_or(Ok(Truncation::DAYS)).map_err(|error| {
            params.fault("period", "value_error", error.to_string());
        });
        let functions = functions(params);
        let zone = params.zone("tz");
        let cycles = CyclesQuery::from_params(params);
        Some(Self {
            cycles: cycles?,
            mode,
            period: period.ok()?,
            functions,
            zone: zone?,
        })
    }
}

fn functions(params: &mut Params<'_>) -> Vec<Function> {
    const NAME: &str = "agg_functions";
    let Some(names) = items(params, NAME) else {
        return vec![Function::Sum];
    };
    if names.is_empty() {
        params.fault(
            NAME,
            "value_error",
            "no function is named; use some of sum, avg, min, max, or leave this parameter out for sum",
        );
    }
    let mut functions = Vec::with_capacity(names.len());
    for name in names {
        match name.parse() {
            Ok(function) if functions.contains(&function) => {}
            Ok(function) => functions.push(function),
            Err(error) => params.fault(NAME, "enum", format!("{error}")),
        }
    }
    functions
}
