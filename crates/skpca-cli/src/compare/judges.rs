//! Judges models on held-out rows.

use std::time::Instant;

use skpca::{Model, Points, Precision};

use super::baselines::{self, Baseline};
use super::evidence::{Estimate, Evidence, quality};
use super::quality::{Sample, linear, nearest};
use super::split::Split;
use super::{Data, Plan};
use crate::failure::Failure;
use crate::random::{Stream, random};

/// Maximum number of fitted rows that a nearest neighbour is searched in.
pub const NEIGHBOURS: usize = 4000;
/// Maximum number of held-out rows whose nearest neighbour is searched.
pub const SEEKERS: usize = 2000;
/// The rarer of two classes is the novel one if it has no more than this share of the rows.
const RARE: f64 = 0.1;

/// What models are judged by, according to the labels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measure {
    Nothing,
    /// How well scores detect a rare class, or all classes but the normal one.
    Novelty,
    /// How well features separate the classes.
    Accuracy,
}

/// The quality of a model on held-out rows, split by split.
#[derive(Clone, Debug, Default)]
pub struct Judged {
    /// Captured shares of the variance of the held-out rows.
    pub captured: Vec<f64>,
    /// How well scores detect novel rows.
    pub novelty: Vec<Evidence>,
    /// Accuracy of the nearest-neighbour classifier.
    pub nearest: Vec<Evidence>,
    /// Accuracy of the linear classifier.
    pub linear: Vec<Evidence>,
}

impl Judged {
    pub fn captured(&self) -> Option<f64> {
        (!self.captured.is_empty()).then(|| self.captured.iter().sum::<f64>() / self.captured.len() as f64)
    }

    pub fn auroc(&self) -> Option<Estimate> {
        quality(&self.novelty)
    }

    /// The accuracy of the better of the two classifiers.
    pub fn accuracy(&self) -> Option<Estimate> {
        quality(self.better())
    }

    /// Whether the linear classifier is the better one.
    pub fn linear_is_better(&self) -> bool {
        quality(&self.linear).map(|q| q.value) > quality(&self.nearest).map(|q| q.value)
    }

    fn better(&self) -> &[Evidence] {
        if self.linear_is_better() { &self.linear } else { &self.nearest }
    }

    /// The evidence for a measure.
    pub fn evidence(&self, measure: Measure) -> &[Evidence] {
        match measure {
            Measure::Nothing => &[],
            Measure::Novelty => &self.novelty,
            Measure::Accuracy => self.better(),
        }
    }

    /// Adds the results of another split.
    pub fn add(&mut self, other: Judged) {
        self.captured.extend(other.captured);
        self.novelty.extend(other.novelty);
        self.nearest.extend(other.nearest);
        self.linear.extend(other.linear);
    }
}

/// The held-out rows of one split, which judge models, and the rows that classifiers are trained on.
pub struct Judges<'a> {
    data: &'a Data,
    split: usize,
    /// The held-out rows, if there are any.
    points: Option<Points<'a>>,
    classes: Vec<usize>,
    /// A sample of the fitted rows, to train classifiers.
    known: Points<'static>,
    known_classes: Vec<usize>,
    /// A sample of the held-out rows, to test classifiers.
    seekers: Vec<usize>,
}

impl<'a> Judges<'a> {
    /// The judges of split `number`.
    pub fn new(data: &'a Data, number: usize, split: &Split, seed: u64) -> Judges<'a> {
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
        let (known_classes, known) = (class(&known), data.points.select(&known));
        Judges { data, split: number, points, classes, known, known_classes, seekers }
    }

    /// Number of held-out rows.
    pub fn count(&self) -> usize {
        self.points.as_ref().map_or(0, Points::n)
    }

    /// Time to score one row: the best of three passes, or of fewer if one takes long.
    pub fn query(&self, model: &Model) -> Result<f64, Failure> {
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

    /// Judges a model; `None` if there are no held-out rows.
    pub fn judged(&self, model: &Model) -> Result<Option<Judged>, Failure> {
        let Some(points) = &self.points else { return Ok(None) };
        let mut judged = Judged { captured: vec![model.captured_share(points)?], ..Judged::default() };
        if let Some(novel) = self.novel() {
            judged.novelty.extend(Evidence::of_scores(self.split, &model.score(points, Precision::Double)?, &novel));
        }
        if self.classifies() {
            let known = model.transform(&self.known, Precision::Double)?;
            let features = model.transform(&points.select(&self.seekers), Precision::Double)?;
            self.classify(&mut judged, model.q(), &known, &features);
        }
        Ok(Some(judged))
    }

    /// Judges the baselines.
    pub fn baselines(&self, plan: &Plan) -> Result<Vec<Baseline>, Failure> {
        let Some(points) = &self.points else { return Ok(Vec::new()) };
        let rows = baselines::Rows { known: &self.known, judges: points, seekers: points.select(&self.seekers) };
        let mut found = Vec::new();
        for kind in baselines::ALL {
            let Some(view) = kind.view(&rows, &plan.base)? else { continue };
            let mut judged = Judged::default();
            if let (Some(novel), Some(scores)) = (self.novel(), &view.scores) {
                judged.novelty.extend(Evidence::of_scores(self.split, scores, &novel));
            }
            if let Some((q, known, features)) = view.features.as_ref().filter(|_| self.classifies()) {
                self.classify(&mut judged, *q, known, features);
            }
            if kind.is_majority() && self.classifies() {
                let most = self.majority();
                let right = self.seekers.iter().map(|&row| self.classes[row] == most).collect();
                judged.nearest.push(Evidence::of_classes(self.split, right));
            }
            found.push(Baseline { name: kind.name, about: kind.about, judged });
        }
        found.retain(|baseline| !(baseline.judged.novelty.is_empty() && baseline.judged.nearest.is_empty()));
        Ok(found)
    }

    fn classify(&self, judged: &mut Judged, columns: usize, known: &[f64], features: &[f64]) {
        let sought: Vec<usize> = self.seekers.iter().map(|&row| self.classes[row]).collect();
        let classes = self.data.classes.as_ref().map_or(0, |classes| classes.names.len());
        let train = Sample { features: known, columns, classes: &self.known_classes };
        let test = Sample { features, columns, classes: &sought };
        judged.nearest.push(Evidence::of_classes(self.split, nearest(&train, &test)));
        judged.linear.extend(linear(&train, &test, classes).map(|right| Evidence::of_classes(self.split, right)));
    }

    /// The most frequent class of the fitted rows.
    fn majority(&self) -> usize {
        let count = |class: usize| self.known_classes.iter().filter(|&&of| of == class).count();
        let classes = self.data.classes.as_ref().map_or(0, |classes| classes.names.len());
        (0..classes).max_by_key(|&class| (count(class), std::cmp::Reverse(class))).unwrap_or(0)
    }

    /// Whether classification is possible: not if only one class was fitted.
    fn classifies(&self) -> bool {
        self.data.classes.as_ref().is_some_and(|classes| classes.normal.is_none())
    }

    /// Which of the held-out rows are novel, if that is known.
    fn novel(&self) -> Option<Vec<bool>> {
        let classes = self.data.classes.as_ref()?;
        match (classes.normal, classes.rarer()) {
            (Some(normal), _) => Some(self.classes.iter().map(|&class| class != normal).collect()),
            (None, Some(rarer)) => Some(self.classes.iter().map(|&class| class == rarer).collect()),
            (None, None) => None,
        }
    }

    /// What models are judged by. Novelty requires held-out rows of both kinds.
    pub fn measure(&self) -> Measure {
        let Some(classes) = self.data.classes.as_ref().filter(|_| self.count() > 0) else { return Measure::Nothing };
        let mixed = self.novel().is_some_and(|novel| novel.contains(&true) && novel.contains(&false));
        let rare = |class: usize| classes.count(class) as f64 <= RARE * classes.of.len() as f64;
        match (classes.normal.is_some(), classes.rarer().is_some_and(rare)) {
            (true, _) if mixed => Measure::Novelty,
            (true, _) => Measure::Nothing,
            (false, true) if mixed => Measure::Novelty,
            _ => Measure::Accuracy,
        }
    }
}
