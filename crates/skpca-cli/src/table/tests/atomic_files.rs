//! What a write leaves behind, whether it succeeds or not.

use super::*;

#[test]
fn a_failed_write_leaves_the_old_file() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("model.bin");
    atomic_write(&path, |output| output.write_all(b"old")).unwrap();
    let failed = atomic_write(&path, |output| {
        output.write_all(b"half")?;
        Err(io::ErrorKind::StorageFull.into())
    });
    assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "a temporary file is left");
    atomic_write(&path, |output| output.write_all(b"new")).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
}

#[cfg(unix)]
#[test]
fn links_and_pipes_survive_a_write() {
    use std::os::unix::fs::{FileTypeExt, symlink};
    use std::process::Command;
    use std::thread;

    let directory = TempDir::new().unwrap();
    let (file, link) = (directory.path().join("file"), directory.path().join("link"));
    fs::write(&file, "old").unwrap();
    symlink(&file, &link).unwrap();
    atomic_write(&link, |output| output.write_all(b"new")).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read(&file).unwrap(), b"new");

    // A pipe stands for /dev/null, which a failing test would replace for the whole machine.
    let pipe = directory.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = {
        let pipe = pipe.clone();
        thread::spawn(move || fs::read(pipe).unwrap())
    };
    atomic_write(&pipe, |output| output.write_all(b"through")).unwrap();
    assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
    assert_eq!(reader.join().unwrap(), b"through");
}
