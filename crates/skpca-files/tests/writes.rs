//! The files left after writes that succeed and writes that fail.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use tempfile::TempDir;

fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    skpca_files::write(path, |output| output.write_all(bytes))
}

fn names(directory: &TempDir) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_failed_write_leaves_the_old_file_and_nothing_else() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("model");
    put(&path, b"old").unwrap();
    let failed = skpca_files::write(&path, |output| {
        output.write_all(b"half")?;
        Err(io::ErrorKind::StorageFull.into())
    });
    assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
    let panicked = std::panic::catch_unwind(|| skpca_files::write(&path, |_| panic!("while writing")));
    assert!(panicked.is_err());
    assert_eq!((fs::read(&path).unwrap(), names(&directory)), (b"old".to_vec(), vec!["model".to_string()]));
    put(&path, b"new").unwrap();
    assert_eq!((fs::read(&path).unwrap(), names(&directory)), (b"new".to_vec(), vec!["model".to_string()]));
}

#[test]
fn temporary_files_are_recognisable() {
    let directory = TempDir::new().unwrap();
    skpca_files::write(&directory.path().join("model"), |output| {
        let [name] = &names(&directory)[..] else { panic!("expected one file") };
        assert!(name.starts_with(".skpca-") && name.ends_with(".tmp"), "{name}");
        output.write_all(b"x")
    })
    .unwrap();
}

#[test]
fn targets_that_cannot_be_written_are_rejected_early() {
    let directory = TempDir::new().unwrap();
    for (path, kind) in [
        (directory.path().to_path_buf(), io::ErrorKind::IsADirectory),
        (directory.path().join("none/model"), io::ErrorKind::NotFound),
    ] {
        assert_eq!(skpca_files::check(&path).unwrap_err().kind(), kind);
        assert_eq!(put(&path, b"x").unwrap_err().kind(), kind);
    }
    skpca_files::check(&directory.path().join("model")).unwrap();
    assert_eq!(names(&directory), Vec::<String>::new(), "a check creates no file");
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
    use std::process::Command;
    use std::thread;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_new_file_has_the_default_mode_and_an_old_one_its_own() {
        let directory = TempDir::new().unwrap();
        let (usual, ours) = (directory.path().join("usual"), directory.path().join("ours"));
        fs::write(&usual, "x").unwrap();
        put(&ours, b"x").unwrap();
        assert_eq!(mode(&ours), mode(&usual));
        for kept in [0o640, 0o666, 0o600, 0o755] {
            set_mode(&ours, kept);
            put(&ours, b"y").unwrap();
            assert_eq!(mode(&ours), kept);
        }
    }

    /// Judged by the mode of the file, since the superuser, who may run the tests, can write to any file.
    #[test]
    fn a_read_only_file_is_an_error() {
        let directory = TempDir::new().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        fs::write(&file, "old").unwrap();
        symlink("file", &link).unwrap();
        set_mode(&file, 0o444);
        for path in [&file, &link] {
            for refused in [skpca_files::check(path), put(path, b"new")] {
                let error = refused.unwrap_err();
                assert_eq!(
                    (error.kind(), error.to_string()),
                    (io::ErrorKind::PermissionDenied, "the file is read-only".into())
                );
            }
        }
        assert_eq!((fs::read(&file).unwrap(), names(&directory).len()), (b"old".to_vec(), 2));
    }

    #[test]
    fn links_are_followed() {
        let directory = TempDir::new().unwrap();
        fs::create_dir(directory.path().join("inner")).unwrap();
        let (file, link) = (directory.path().join("inner/file"), directory.path().join("link"));
        symlink("inner/middle", &link).unwrap();
        symlink("file", directory.path().join("inner/middle")).unwrap();
        // The first time, the file does not exist yet.
        for text in ["new", "newer"] {
            put(&link, text.as_bytes()).unwrap();
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
        assert_eq!(fs::read_dir(directory.path().join("inner")).unwrap().count(), 2, "a temporary file is left");
        let ring = directory.path().join("loop");
        symlink("loop", &ring).unwrap();
        assert!(put(&ring, b"x").is_err());
    }

    /// A pipe in place of /dev/null, which a failing test would replace for the whole machine.
    #[test]
    fn pipes_are_written_directly() {
        let directory = TempDir::new().unwrap();
        let pipe = directory.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = {
            let pipe = pipe.clone();
            thread::spawn(move || fs::read(pipe).unwrap())
        };
        put(&pipe, b"through").unwrap();
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
        assert_eq!(reader.join().unwrap(), b"through");
    }
}
