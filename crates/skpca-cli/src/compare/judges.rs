//! What rows that no fit saw say of a model.

use std::time::{Duration, Instant};

use skpca::{Model, Points, Precision, format};

use super::quality::{self, Sample};
use super::split::Split;
use super::{Accuracy, Case, Cell, Data, Judged};
use crate::failure::Failure;
use crate::random::{Stream, random};

/// Rows that a nearest neighbour is looked for among, and rows that look for one.
pub const NEIGHBOURS: usize = 4000;
pub const SEEKERS: usize = 2000;
/// A class of two is the novel one where it has no more than this share of the rows.
const RARE: f64 = 0.1;

/// What a label asks of a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measure {
    Nothing,
    /// To tell a rare class by its scores.
    Novelty,
    /// To tell classes by its features.
    Accuracy,
}

/// Rows that judge models, and rows that classifiers learn from.
pub struct Judges<'a> {
    data: &'a Data,
    /// Rows that judge, none if there are none.
    points: Option<Points<'a>>,
    classes: Vec<usize>,
    /// Some of the rows that were fitted.
    known: Points<'static>,
    known_classes: Vec<usize>,
    /// Some of the rows that judge.
    seekers: Vec<usize>,
}

impl<'a> Judges<'a> {
    pub fn new(data: &'a Data, split: &Split, seed: u64) -> Judges<'a> {
        let class = |rows: &[usize]| -> Vec<usize> {
            data.classes.as_ref().map_or(Vec::new(), |classes| rows.iter().map(|&row| classes.of[row]).collect())
        };
        let (points, classes) = match &data.test {
            Some(test) => {
                (Some(test.slice(0..test.n())), data.classes.as_ref().map_or(Vec::new(), |c| c.of_test.clone()))
            }
            None if split.held_out.is_empty() => (None, Vec::new()),
            None => (Some(data.points.select(&split.held_out)), class(&split.held_out)),
        };
        let mut random = random(seed, Stream::Neighbours);
        let known = random.sample(split.fitted.len(), NEIGHBOURS);
        let known: Vec<usize> = known.iter().map(|&i| split.fitted[i]).collect();
        let seekers = random.sample(points.as_ref().map_or(0, Points::n), SEEKERS);
        Judges { data, points, classes, known_classes: class(&known), known: data.points.select(&known), seekers }
    }

    /// Rows that judge.
    pub fn count(&self) -> usize {
        self.points.as_ref().map_or(0, Points::n)
    }

    pub fn cell(&self, case: Case, model: Model, time: Duration) -> Result<Cell, Failure> {
        let mut bytes = Vec::new();
        format::write(&model, &mut bytes)?;
        let judged = self.points.as_ref().map(|points| self.judged(&model, points)).transpose()?;
        let (query, seconds) = (self.query(&model)?, time.as_secs_f64());
        Ok(Cell { case, seconds, query, bytes: bytes.len(), judged, model })
    }

    /// Time to score one row: the best of three passes, of one that takes long.
    fn query(&self, model: &Model) -> Result<f64, Failure> {
        let rows = self.points.as_ref().unwrap_or(&self.known);
        let mut best = f64::INFINITY;
        for _ in 0..3 {
            let start = Instant::now();
            std::hint::black_box(model.score(rows, Precision::Double)?);
            best = best.min(start.elapsed().as_secs_f64());
            if best > 0.2 {
                break;
            }
        }
        Ok(best / rows.n() as f64)
    }

    fn judged(&self, model: &Model, points: &Points) -> Result<Judged, Failure> {
        let mut judged = Judged { captured: model.captured_share(points)?, auroc: None, classes: None };
        let Some(classes) = &self.data.classes else { return Ok(judged) };
        if classes.rarer().is_some() {
            let novel: Vec<bool> = self.classes.iter().map(|&class| Some(class) == classes.rarer()).collect();
            let area = quality::auroc(&model.score(points, Precision::Double)?, &novel);
            judged.auroc = area.is_finite().then_some(area);
        }
        let seekers = points.select(&self.seekers);
        let sought: Vec<usize> = self.seekers.iter().map(|&row| self.classes[row]).collect();
        let known = model.transform(&self.known, Precision::Double)?;
        let features = model.transform(&seekers, Precision::Double)?;
        let train = Sample { features: &known, columns: model.q(), classes: &self.known_classes };
        let test = Sample { features: &features, columns: model.q(), classes: &sought };
        judged.classes = Some(Accuracy {
            nearest: quality::nearest(&train, &test),
            linear: quality::linear(&train, &test, classes.names.len()),
        });
        Ok(judged)
    }

    /// What the label asks for. A rare class of which no row judges cannot be told.
    pub fn measure(&self) -> Measure {
        let Some(classes) = self.data.classes.as_ref().filter(|_| self.count() > 0) else { return Measure::Nothing };
        let rare = |class: usize| classes.count(class) as f64 <= RARE * classes.of.len() as f64;
        if classes.rarer().is_some_and(rare) && self.novel() > 0 { Measure::Novelty } else { Measure::Accuracy }
    }

    /// Rows that judge and are of the rarer class.
    fn novel(&self) -> usize {
        let rarer = self.data.classes.as_ref().and_then(super::Classes::rarer);
        self.classes.iter().filter(|&&class| Some(class) == rarer).count()
    }

    /// The number that counts of a model, and its standard error.
    pub fn quality(&self, judged: &Judged) -> Option<(f64, f64)> {
        match self.measure() {
            Measure::Nothing => None,
            Measure::Novelty => {
                judged.auroc.map(|area| (area, quality::auroc_error(area, self.novel(), self.count() - self.novel())))
            }
            Measure::Accuracy => judged.classes.as_ref().map(|classes| {
                let best = classes.nearest.max(classes.linear);
                (best, quality::share_error(best, self.seekers.len()))
            }),
        }
    }
}
