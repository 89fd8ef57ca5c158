//! Free memory, where the system reports it.

use std::fs;

/// Share of the free memory that a fit may take by default, which leaves some to other processes.
const SHARE: (usize, usize) = (3, 4);

/// Bytes that a fit may take by default.
pub fn share() -> usize {
    available().map_or(usize::MAX, |free| free / SHARE.1 * SHARE.0)
}

/// Bytes that are free now, if the system reports it, within the limits of the container and of the process
/// (`ulimit -v`).
pub fn available() -> Option<usize> {
    [free(), address_space()].into_iter().flatten().min()
}

/// Bytes that the process may still allocate under its limit.
fn address_space() -> Option<usize> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let most = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    let most: usize = most.split_whitespace().next()?.parse().ok()?;
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let used = status.lines().find_map(|line| line.strip_prefix("VmSize:"))?;
    let used: usize = used.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(most.saturating_sub(1024 * used))
}

fn free() -> Option<usize> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let free = line.trim().trim_end_matches("kB").trim().parse::<usize>().ok()? * 1024;
    let read = |name: &str| fs::read_to_string(format!("/sys/fs/cgroup/{name}")).ok()?.trim().parse::<usize>().ok();
    match (read("memory.max"), read("memory.current")) {
        (Some(most), Some(used)) => Some(free.min(most.saturating_sub(used))),
        _ => Some(free),
    }
}
