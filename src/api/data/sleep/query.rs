//! The parameters of a question about sleep.

use crate::api::answer_form::AnswerForm;
use crate::api::query_params::{Choice as _, Form, FromParams, Literal, Need, Params};
use crate::model::duration::{Truncation, parse_length};
use crate::model::excerpt::beginning;
use crate::model::time::TimeRange;
use crate::model::zone::Zone;
use crate::query::sleep::spec::Mode;
use crate::query::statistic::Statistic;

/// Two hours without sleep separate two cycles.
pub(in crate::api::data) const USUAL_GAP: &str = "PT2H";

/// From noon to noon.
const NIGHTS: &str = "1d@12h";

/// Which cycles, and in which form.
#[derive(Debug)]
pub struct CyclesQuery {
    pub range: TimeRange,
    pub form: AnswerForm,
    pub gap: i64,
    pub stages: Option<Vec<i64>>,
    pub gap_stages: Vec<i64>,
    pub clip: bool,
    /// The zone whose noon separates the nights, if rows are to name their night.
    pub nights: Option<Zone>,
}

impl FromParams for CyclesQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let (range, form) = (params.range(), AnswerForm::required(params));
        let gap = params.parsed_or("cycle_gap", USUAL_GAP, parse_length);
        let stages = stage_list(params, "stages", Emptiness::Refused);
        let gap_stages = stage_list(params, "gap_stages", Emptiness::Allowed).unwrap_or_default();
        let clip = params.flag_or("clip_to_range", true);
        let nights = params.nights();
        Some(Self {
            range: range?,
            form: form?,
            gap: gap?,
            stages,
            gap_stages,
            clip: clip?,
            nights: nights?,
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Emptiness {
    Allowed,
    Refused,
}

fn stage_list(params: &mut Params<'_>, name: &'static str, emptiness: Emptiness) -> Option<Vec<i64>> {
    let items = params.bracketed(name, Form::ANY_WHOLE, Need::Optional)?;
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
                format!("{:?} is not the number of a stage", beginning(&item)),
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
        let merge_overlapping = params.flag_or("merge_overlapping", true);
        let merge_contiguous = params.flag_or("merge_contiguous", true);
        Some(Self {
            cycles: CyclesQuery::from_params(params)?,
            merge_overlapping: merge_overlapping?,
            merge_contiguous: merge_contiguous?,
        })
    }
}

/// Which totals.
#[derive(Debug)]
pub struct AggregateQuery {
    pub cycles: CyclesQuery,
    pub mode: Mode,
    pub period: Truncation,
    pub functions: Vec<Statistic>,
    pub zone: Zone,
    pub partial: bool,
}

impl FromParams for AggregateQuery {
    fn from_params(params: &mut Params<'_>) -> Option<Self> {
        let mode = params.choice_or("mode", Mode::End);
        let period = params.parsed_or("period", "1d", Truncation::parse);
        let functions = functions(params);
        let zone = params.zone("tz");
        let partial = params.flag_or("partial", false);
        let cycles = CyclesQuery::from_params(params);
        let (mut mode, mut period) = (mode?, period?);
        let (cycles, zone) = (cycles?, zone?);
        if cycles.nights.is_some() {
            if !params.is_sent("mode") {
                mode = Mode::Start;
            }
            period = nights(params, period)?;
        }
        Some(Self {
            cycles,
            mode,
            period,
            functions,
            zone,
            partial: partial?,
        })
    }
}

/// The period from noon to noon: totals of any other period cannot name their night.
fn nights(params: &mut Params<'_>, period: Truncation) -> Option<Truncation> {
    let noon_to_noon = Truncation::parse(NIGHTS).ok()?;
    if params.is_sent("period") && period != noon_to_noon {
        params.fault(
            "period",
            "value_error",
            format!("with night_of, periods are nights: {NIGHTS}, or nothing"),
        );
        return None;
    }
    Some(noon_to_noon)
}

fn functions(params: &mut Params<'_>) -> Vec<Statistic> {
    const NAME: &str = "agg_functions";
    let need = Need::Or(Literal::Text(Statistic::Sum.name()));
    let Some(names) = params.bracketed(NAME, Form::Word(Statistic::words()), need) else {
        return vec![Statistic::Sum];
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
