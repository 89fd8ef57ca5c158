//! The number of threads follows `--threads` and `OMP_NUM_THREADS`.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use crate::support::{Desk, NAMES, csv, normal};

/// The number of threads of `skpca score`, counted while it waits for the next row.
fn threads(desk: &Desk, flags: &str, variable: &str) -> usize {
    let mut command = desk.command(&format!("score model.skpca - {flags}"));
    command.env("OMP_NUM_THREADS", variable).env_remove("RAYON_NUM_THREADS");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    input.write_all(b"a,b,c\n1,2,3\n").unwrap();
    let mut answer = String::new();
    (0..2).for_each(|_| assert!(output.read_line(&mut answer).unwrap() > 0, "{flags}: no answer"));
    let count = std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap().count();
    drop(input);
    assert!(child.wait().unwrap().success());
    count
}

#[test]
#[cfg(target_os = "linux")]
fn the_number_of_threads_is_as_requested() {
    let desk = Desk::new();
    desk.put("data.csv", csv(&NAMES, &normal(1, 100, 3)));
    desk.ok("fit data.csv -o model.skpca --support 8");
    let one = threads(&desk, "--threads 1", "");
    assert_eq!(threads(&desk, "--threads 4", ""), one + 3);
    assert_eq!(threads(&desk, "", "1"), one);
    assert_eq!(threads(&desk, "", "5"), one + 4);
    assert_eq!(threads(&desk, "", "3,2"), one + 2, "the outermost level");
    assert_eq!(threads(&desk, "--threads 2", "5"), one + 1, "the flag overrides the environment");
    for nonsense in ["many", "0", "-1"] {
        assert_eq!(threads(&desk, "", nonsense), threads(&desk, "", ""), "{nonsense}");
    }
}
