//! The driver: generates bytes, runs targets on them, and stores the inputs that break a promise.
//!
//!     fuzz/run 2h                       all targets, which share the time
//!     fuzz/run 10m model table          these targets only
//!     fuzz/run 20000 model table        the first 20,000 cases of each, the same on every machine
//!     fuzz/run --seed 7 1h              other cases: the same seed gives the same ones
//!     fuzz/run --case model:123         one case again, in this process
//!     fuzz/run --file model FILE        the bytes of a file
//!     fuzz/run --soak 1000000           this many fits, and a tenth as many updates: does memory grow?
//!
//! Each target runs in its own process, so that an abort, a stack overflow or a hang is a finding and does not end the
//! run. A case depends on its number, the random seed, and the seeds and corpus of the target. Findings are stored in
//! `target/fuzz`. Once fixed, they belong in `fuzz/corpus/TARGET`, with which every run begins.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{Seek, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio, exit};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use skpca::{Level, Random};
use skpca_fuzz::{TARGETS, Target, target};

/// Memory limit of a case, as a multiple of its bytes.
const TIMES: usize = 10;
/// Bytes added to the memory limit of a case.
const ROOM: usize = 100_000_000;
/// Seconds after which a case counts as a hang, in wall time on a machine that may be busy.
const LIMIT: u64 = 60;
/// Number of findings after which a target is stopped.
const FINDINGS: usize = 20;
/// Exit code of a worker that detected a hang.
const HANG: i32 = 124;

/// How long a target is fuzzed: until the time or the cases are used up.
#[derive(Clone, Copy)]
struct Budget {
    time: Duration,
    /// Number of the first case that is not run.
    cases: u64,
}

/// The system allocator, with counts of the allocated bytes.
struct Counting;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn record(size: usize) {
    PEAK.fetch_max(ALLOCATED.fetch_add(size, Relaxed) + size, Relaxed);
}

// SAFETY: every call is forwarded to the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        record(layout.size());
        // SAFETY: the caller upholds the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        record(layout.size());
        // SAFETY: the caller upholds the contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller upholds the contract.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        record(size);
        ALLOCATED.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller upholds the contract.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(found) => {
            eprintln!("{found} findings: see {}", kept().display());
            ExitCode::FAILURE
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(2)
        }
    }
}

/// Runs a command line, and returns the number of findings.
fn run(words: &[String]) -> Result<usize, String> {
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut seed = 0;
    if let Some(at) = words.iter().position(|word| *word == "--seed") {
        let given = words.get(at + 1).ok_or("--seed needs a number")?;
        seed = given.parse().map_err(|_| format!("{given}: expected a number"))?;
        words.drain(at..at + 2);
    }
    match words.as_slice() {
        ["--worker", name, from, seconds, cases, log] => {
            let numbers = (from.parse(), seconds.parse(), cases.parse(), File::create(log));
            let (Ok(from), Ok(seconds), Ok(cases), Ok(log)) = numbers else {
                return Err("a worker needs numbers and a log".into());
            };
            work(named(name)?, seed, from, Budget { time: Duration::from_secs_f64(seconds), cases }, &log);
            Ok(0)
        }
        ["--case", case] => {
            let (name, number) = case.split_once(':').ok_or("expected TARGET:NUMBER")?;
            let target = named(name)?;
            let number = number.parse().map_err(|_| format!("{number}: expected a number"))?;
            Ok(alone(target, &made(target, seed, number, &starts(target))))
        }
        ["--file", name, file] => Ok(alone(named(name)?, &fs::read(file).map_err(|error| format!("{file}: {error}"))?)),
        ["--soak", count] => Ok(soak(count.parse().map_err(|_| format!("{count}: expected a number"))?)),
        [budget, names @ ..] => {
            let wrong = || format!("{budget}: expected a time such as 20s, 10m or 2h, or a number of cases per target");
            let targets: Vec<&Target> = if names.is_empty() {
                TARGETS.iter().collect()
            } else {
                names.iter().map(|name| named(name)).collect::<Result<_, _>>()?
            };
            let shares: u32 = targets.iter().map(|target| target.share).sum();
            let time = duration(budget).map(|time| time / shares);
            let cases = budget.parse().ok();
            if time.is_none() && cases.is_none() {
                return Err(wrong());
            }
            check_levels()?;
            Ok(all(&targets, seed, |target| Budget {
                time: time.map_or(Duration::MAX, |time| time * target.share),
                cases: cases.unwrap_or(u64::MAX),
            }))
        }
        [] => Err(format!("usage: fuzz/run TIME|CASES [TARGET…]\ntargets: {}", list())),
    }
}

/// Prints the instruction sets of this machine: fits draw one of them, and the tests of the library compare whole
/// models on all. Returns an error if they are not those in SKPCA_LEVELS, so that a run cannot skip an instruction set
/// unnoticed.
fn check_levels() -> Result<(), String> {
    let names: Vec<&str> = Level::available().into_iter().map(Level::name).collect();
    println!("instruction sets: {}", names.join(" "));
    match std::env::var("SKPCA_LEVELS") {
        Ok(expected) if expected.split_whitespace().ne(names.iter().copied()) => {
            Err(format!("SKPCA_LEVELS = {expected}: this machine has {}", names.join(" ")))
        }
        _ => Ok(()),
    }
}

fn list() -> String {
    TARGETS.iter().map(|target| format!("\n  {:<9} {}", target.name, target.about)).collect()
}

fn named(name: &str) -> Result<&'static Target, String> {
    target(name).ok_or_else(|| format!("{name}: expected one of {}", list()))
}

fn duration(text: &str) -> Option<Duration> {
    let unit = match text.chars().next_back()? {
        's' => 1.0,
        'm' => 60.0,
        'h' => 3600.0,
        _ => return None,
    };
    let number: f64 = text[..text.len() - 1].parse().ok()?;
    Duration::try_from_secs_f64(number * unit).ok()
}

/// The directory of findings.
fn kept() -> PathBuf {
    let beside = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.parent()?.join("fuzz")));
    beside.unwrap_or_else(|| std::env::temp_dir().join("skpca-fuzz"))
}

fn corpus(target: &Target) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.sort();
    files.iter().map(|file| fs::read(file).expect("a file of the corpus")).collect()
}

/// The inputs that mutation starts from: valid bytes, and those of fixed defects.
fn starts(target: &Target) -> Vec<Vec<u8>> {
    let mut seeds = (target.seeds)();
    seeds.extend(corpus(target));
    seeds
}

/// The bytes of a case; the first cases are the unmodified starts.
fn made(target: &Target, seed: u64, number: u64, starts: &[Vec<u8>]) -> Vec<u8> {
    match starts.get(number as usize) {
        Some(start) => start.clone(),
        None => {
            let mut random = Random::numbered(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15), 77);
            (target.make)(&mut random, starts)
        }
    }
}

/// Runs a case; returns how it broke a promise, if it did.
fn verdict(target: &Target, bytes: &[u8]) -> Option<String> {
    let before = ALLOCATED.load(Relaxed);
    PEAK.store(before, Relaxed);
    let outcome = catch_unwind(AssertUnwindSafe(|| (target.run)(bytes)));
    let peak = PEAK.load(Relaxed) - before;
    if outcome.is_err() {
        return Some(PANIC.take());
    }
    let limit = TIMES * bytes.len() + ROOM;
    (peak > limit).then(|| format!("{peak} bytes of memory for {} bytes", bytes.len()))
}

fn prepare() {
    // Use this thread only: cases are small, and one core is enough.
    let _ = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global();
    std::panic::set_hook(Box::new(|what| PANIC.set(what.to_string())));
}

/// Runs one case in this process.
fn alone(target: &Target, bytes: &[u8]) -> usize {
    prepare();
    let start = Instant::now();
    let verdict = verdict(target, bytes);
    println!(
        "{} bytes, {:.3} s: {}",
        bytes.len(),
        start.elapsed().as_secs_f64(),
        verdict.as_deref().unwrap_or("sound")
    );
    skpca_fuzz::clean();
    usize::from(verdict.is_some())
}

/// Runs fits and updates repeatedly, and compares the memory at the end with that after the first tenth.
fn soak(count: u64) -> usize {
    prepare();
    let mut learn = skpca_fuzz::soak::learner();
    println!("{:<8} {:>9} {:>7} {:>14} {:>14}", "work", "times", "per s", "more allocated", "more resident");
    grown("fits", count, &mut skpca_fuzz::soak::fit) + grown("updates", count / 10, &mut learn)
}

/// Maximum growth of the allocated bytes; the resident memory may grow by ten times as much.
const GROWTH: usize = 1_000_000;

fn grown(name: &str, count: u64, work: &mut dyn FnMut(u64)) -> usize {
    (0..count / 10).for_each(&mut *work);
    let (start, allocated, held) = (Instant::now(), ALLOCATED.load(Relaxed), resident());
    (count / 10..count).for_each(work);
    let seconds = start.elapsed().as_secs_f64();
    let (allocated, held) = (ALLOCATED.load(Relaxed).saturating_sub(allocated), resident().saturating_sub(held));
    let rate = (count - count / 10) as f64 / seconds;
    println!("{name:<8} {count:>9} {rate:>7.0} {:>11} kB {:>11} kB", allocated / 1000, held / 1000);
    usize::from(allocated > GROWTH || held > 10 * GROWTH)
}

/// Resident memory of this process in bytes; 0 if unknown.
fn resident() -> usize {
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok()).map_or(0, |pages| 4096 * pages)
}

/// Start of the running case, in milliseconds.
static BEGAN: AtomicU64 = AtomicU64::new(0);

/// Runs cases from number `from` on, until the budget is used up. Each number is logged before its case runs, so that
/// the parent process can read it if this one dies.
fn work(target: &'static Target, seed: u64, from: u64, budget: Budget, log: &File) {
    prepare();
    let start = Instant::now();
    let starts = starts(target);
    let now = move || start.elapsed().as_millis() as u64;
    BEGAN.store(now(), Relaxed);
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_secs(1));
            if now().saturating_sub(BEGAN.load(Relaxed)) > 1000 * LIMIT {
                exit(HANG);
            }
        }
    });
    let (start, mut number, mut longest, mut most) = (Instant::now(), from, 0, 0);
    while start.elapsed() < budget.time && number < budget.cases {
        let bytes = made(target, seed, number, &starts);
        BEGAN.store(now(), Relaxed);
        note(log, [number, longest, most]);
        if let Some(why) = verdict(target, &bytes) {
            keep(target, seed, number, &bytes, &why);
            skpca_fuzz::clean();
            exit(1);
        }
        longest = longest.max(now() - BEGAN.load(Relaxed));
        most = most.max((PEAK.load(Relaxed)) as u64);
        number += 1;
    }
    note(log, [number, longest, most]);
    skpca_fuzz::clean();
}

/// Logs the number of the case, the longest time so far in milliseconds, and the largest memory.
fn note(log: &File, numbers: [u64; 3]) {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    let mut log = log;
    log.rewind().and_then(|()| log.write_all(&bytes)).expect("room for a few bytes");
}

fn keep(target: &Target, seed: u64, number: u64, bytes: &[u8], why: &str) {
    let folder = kept();
    let name = format!("{}-{seed}-{number}", target.name);
    let written = fs::create_dir_all(&folder).and_then(|()| fs::write(folder.join(&name), bytes));
    eprintln!("FOUND {name} ({} bytes): {why}", bytes.len());
    if let Err(error) = written {
        eprintln!("it could not be kept: {error}");
    }
}

/// Runs every target in its own process, one after another. Returns the number of findings.
fn all(targets: &[&'static Target], seed: u64, budget: impl Fn(&Target) -> Budget) -> usize {
    println!("{:<9} {:>11} {:>9} {:>10} {:>9} {:>9}", "target", "cases", "per s", "longest", "memory", "findings");
    targets.iter().map(|target| one(target, seed, budget(target))).sum()
}

fn one(target: &'static Target, seed: u64, budget: Budget) -> usize {
    let (start, mut from, mut found, mut longest, mut most) = (Instant::now(), 0, 0, 0, 0);
    let folder = kept();
    fs::create_dir_all(&folder).expect("a folder for findings");
    let log = folder.join(format!("{}-{}.log", target.name, std::process::id()));
    while start.elapsed() < budget.time && from < budget.cases && found < FINDINGS {
        // Bounded, so that it can be parsed back even without a limit.
        let left = budget.time.saturating_sub(start.elapsed()).min(Duration::from_secs(1 << 32)).as_secs_f64();
        let exe = std::env::current_exe().expect("the driver itself");
        let [seed_text, from_text, left, cases] =
            [seed.to_string(), from.to_string(), left.to_string(), budget.cases.to_string()];
        let words = ["--seed", &seed_text, "--worker", target.name, &from_text, &left, &cases];
        let status = Command::new(exe).args(words).arg(&log).stdin(Stdio::null()).status().expect("a worker");
        let [number, slow, memory] = last(&log);
        (longest, most) = (longest.max(slow), most.max(memory));
        if status.success() {
            from = number;
            break;
        }
        found += 1;
        if status.code() != Some(1) {
            let why =
                if status.code() == Some(HANG) { format!("it took more than {LIMIT} s") } else { status.to_string() };
            keep(target, seed, number, &made(target, seed, number, &starts(target)), &why);
        }
        from = number + 1;
    }
    let _ = fs::remove_file(&log);
    let seconds = start.elapsed().as_secs_f64();
    let rate = from as f64 / seconds;
    println!("{:<9} {from:>11} {rate:>9.0} {:>8} ms {:>6} MB {found:>9}", target.name, longest, most / 1_000_000);
    found
}

/// The last entry that a worker has logged.
fn last(log: &Path) -> [u64; 3] {
    let bytes = fs::read(log).unwrap_or_default();
    let mut numbers = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
    [(); 3].map(|()| numbers.next().unwrap_or(0))
}
